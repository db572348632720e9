// Package memory is the store that keeps records in this process and forgets them when it ends.
package memory

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func init() {
	caddy.RegisterModule(Store{})
}

// Store keeps the records of events in the memory of this process. They are gone when it ends, so that events that were
// processed before a restart are processed again: it is for tests and for trying things out. Records survive a reload of
// the configuration for as long as a route uses a store of the same name.
type Store struct {
	// Routes that name the same memory share its records. Default: empty, the one memory of all routes that give no name.
	Name string `json:"name,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup.stores.memory",
		New: func() caddy.Module { return new(Store) },
	}
}

// UnmarshalCaddyfile sets the store up from its block. Syntax:
//
//	memory {
//		name <name>
//	}
func (s *Store) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "name":
			if s.Name != "" {
				return d.Err("name is already set")
			}
			if !d.AllArgs(&s.Name) {
				return d.ArgErr()
			}
		default:
			return d.Errf("unrecognized subdirective %q; allowed are name", d.Val())
		}
	}
	return nil
}

// Provision has nothing to prepare.
func (s *Store) Provision(caddy.Context) error { return nil }

// Identity is the key by which routes and configurations share one open store.
func (s *Store) Identity() string { return "memory:" + s.Name }

// OpenStore returns an empty store.
func (s *Store) OpenStore(*zap.Logger) (claim.Store, error) { return open(realTime), nil }

// Interface guards
var (
	_ caddy.Provisioner     = (*Store)(nil)
	_ caddyfile.Unmarshaler = (*Store)(nil)
)
