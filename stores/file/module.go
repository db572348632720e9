// Package file is the embedded store: one file in Caddy's data directory, for one Caddy process.
package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func init() {
	caddy.RegisterModule(Store{})
}

// Store keeps the records of events in one file, which survives restarts and crashes: an event is answered as processed
// only when its record is on the disk. It serves one Caddy process; several processes need a store that they share. After
// a crash, events that were being processed can be claimed again at once.
type Store struct {
	// The file. Its directory must exist. Placeholders such as `{env.DEDUP_FILE}` are replaced when the configuration is
	// loaded. Default: `webhook_dedup/events.db` in Caddy's data directory, which is created where it does not exist.
	Path string `json:"path,omitempty"`

	path        string
	makeParents bool
}

// CaddyModule returns the Caddy module information.
func (Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup.stores.file",
		New: func() caddy.Module { return new(Store) },
	}
}

// UnmarshalCaddyfile sets the store up from its block. Syntax:
//
//	file {
//		path <file>
//	}
func (s *Store) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "path":
			if s.Path != "" {
				return d.Err("path is already set")
			}
			if !d.AllArgs(&s.Path) {
				return d.ArgErr()
			}
			if s.Path == "" {
				return d.Err("path is empty")
			}
		default:
			return d.Errf("unrecognized subdirective %q; allowed are path", d.Val())
		}
	}
	return nil
}

// Provision finds out which file it is, and whether it can be one, without creating or locking anything.
func (s *Store) Provision(caddy.Context) error {
	s.makeParents = s.Path == ""
	path := filepath.Join(caddy.AppDataDir(), "webhook_dedup", "events.db")
	if !s.makeParents {
		var err error
		if path, err = caddy.NewReplacer().ReplaceOrErr(s.Path, true, true); err != nil {
			return fmt.Errorf("path %q: %w", s.Path, err)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	s.path = resolve(path)
	if info, err := os.Stat(s.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("path %q is %s, not a file", path, kind(info))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("path %q cannot be used: %w", path, err)
	}
	if s.makeParents {
		return nil
	}
	switch info, err := os.Stat(filepath.Dir(s.path)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("path %q: its directory does not exist", path)
	case err != nil:
		return fmt.Errorf("path %q cannot be used: %w", path, err)
	case !info.IsDir():
		return fmt.Errorf("path %q: %q is no directory", path, filepath.Dir(s.path))
	}
	return nil
}

func kind(info fs.FileInfo) string {
	if info.IsDir() {
		return "a directory"
	}
	return "something special"
}

// resolve follows the symbolic links of path as far as it exists, so that one file has one name.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	// A link to a file that does not exist yet leads on all the same.
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if target = filepath.Clean(target); target != path {
			if real, err := filepath.EvalSymlinks(filepath.Dir(target)); err == nil {
				return filepath.Join(real, filepath.Base(target))
			}
		}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// Identity is the key by which routes and configurations share one open store.
func (s *Store) Identity() string { return "file:" + s.path }

// OpenStore opens the file and takes its lock.
func (s *Store) OpenStore(logger *zap.Logger) (claim.Store, error) {
	if s.makeParents {
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			return nil, fmt.Errorf("making the directory of the event file: %w", err)
		}
	}
	return open(s.path, options{log: logger})
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Store)(nil)
	_ caddyfile.Unmarshaler = (*Store)(nil)
)
