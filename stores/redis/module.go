// Package redis is the store that several Caddy processes share: a Redis or Valkey server.
package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func init() {
	caddy.RegisterModule(Store{})
}

// defaultPrefix keeps the module's keys apart from others of the same database.
const defaultPrefix = "webhook_dedup"

// Store keeps the records of events in Redis 6.2 or later, or in Valkey, so that any number of Caddy processes share
// them. The server should keep its data on disk and must not evict keys (`maxmemory-policy noeviction`): an evicted
// record is an event that is processed again.
type Store struct {
	// Where the server is: `redis://[user:password@]host:port[/db]`, the same with `rediss://` for TLS, or
	// `unix://[user:password@]/path/to/socket[?db=0]`. Placeholders such as `{env.REDIS_URL}` are replaced when the
	// configuration is loaded. Default: none, it is required.
	URL string `json:"url,omitempty"`

	// The first part of every key, for several installations in one database. Default: `webhook_dedup`.
	Prefix string `json:"prefix,omitempty"`

	options *redis.Options
	prefix  string
	// target is what distinguishes this store from others, secrets included.
	target string
}

// CaddyModule returns the Caddy module information.
func (Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup.stores.redis",
		New: func() caddy.Module { return new(Store) },
	}
}

// UnmarshalCaddyfile sets the store up from its block. Syntax:
//
//	redis {
//		url    <url>
//		prefix <text>
//	}
func (s *Store) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.Err("redis takes its settings in a block, as in redis { url {env.REDIS_URL} }") // ArgErr would repeat the argument
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var field *string
		name := d.Val()
		switch name {
		case "url":
			field = &s.URL
		case "prefix":
			field = &s.Prefix
		default:
			if strings.Contains(name, "://") {
				return d.Err("a URL stands behind url, as in url {env.REDIS_URL}")
			}
			return d.Errf("unrecognized subdirective %q; allowed are url, prefix", name)
		}
		if *field != "" {
			return d.Errf("%s is already set", name)
		}
		if !d.AllArgs(field) {
			return d.Errf("%s takes one argument", name) // not ArgErr, which repeats the line's last word: it may be a secret
		}
		if *field == "" {
			return d.Errf("%s is empty", name)
		}
	}
	return nil
}

// Provision reads the configuration. It does not connect.
func (s *Store) Provision(caddy.Context) error {
	if s.URL == "" {
		return errors.New("url is missing, as in url {env.REDIS_URL}")
	}
	target, err := caddy.NewReplacer().ReplaceOrErr(s.URL, true, true)
	if err != nil {
		if strings.Contains(err.Error(), "{env.") || strings.Contains(err.Error(), "{file.") {
			return fmt.Errorf("url: %w", err)
		}
		// What else stands in braces may be a part of a password.
		return errors.New("url: something in braces is no placeholder that has a value here; allowed are {env.<name>} and {file.<path>}")
	}
	if s.options, err = parseURL(target); err != nil {
		return err
	}
	s.prefix = defaultPrefix
	if s.Prefix != "" {
		if s.prefix, err = caddy.NewReplacer().ReplaceOrErr(s.Prefix, true, true); err != nil {
			return fmt.Errorf("prefix %q: %w", s.Prefix, err)
		}
	}
	s.target = target
	return nil
}

var schemes = []string{"redis", "rediss", "unix"}

// parseURL never says what the URL was: it may hold a password, even where it is no URL at all. That is also why the
// errors of the parsers are not passed on.
func parseURL(target string) (*redis.Options, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, errors.New("url is not a URL; percent-encode special characters in the user name and the password")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("url is of no known kind; allowed are %s://", strings.Join(schemes, "://, "))
	}
	o, err := redis.ParseURL(target)
	if err != nil {
		return nil, errors.New("url cannot be used; after the host comes nothing but the number of a database, and after ? only options that go-redis knows")
	}
	bound(o)
	return o, nil
}

// Identity is the key by which routes and configurations share one open store. It shows neither server nor password.
func (s *Store) Identity() string {
	sum := sha256.Sum256([]byte(s.prefix + "\x00" + s.target))
	return "redis:" + hex.EncodeToString(sum[:])
}

// OpenStore returns the store; it connects with the first operation.
func (s *Store) OpenStore(*zap.Logger) (claim.Store, error) {
	quiet()
	options := *s.options // go-redis completes the options that it is given
	client := redis.NewClient(&options)
	store, err := newStore(client, s.prefix)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening redis: %w", err), client.Close())
	}
	return store, nil
}

// quiet takes go-redis' own log, which goes to standard error, into Caddy's. Each operation reports its error anyway.
var quiet = sync.OnceFunc(func() { redis.SetLogger(debugLog{}) })

type debugLog struct{}

// Printf implements the logger of go-redis.
func (debugLog) Printf(_ context.Context, format string, args ...any) {
	caddy.Log().Named("webhook_dedup.stores.redis").Debug(fmt.Sprintf(format, args...))
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Store)(nil)
	_ caddyfile.Unmarshaler = (*Store)(nil)
)
