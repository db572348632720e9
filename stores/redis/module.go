// Package redis is the store that several Caddy processes share: a Redis or Valkey server, the master that Sentinel
// names, or a cluster.
package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
//
// Placeholders such as `{env.REDIS_PASSWORD}` or `{file./run/secrets/redis}` are replaced when the configuration is loaded.
type Store struct {
	// Where the server is: `redis://[user:password@]host:port[/db]`, the same with `rediss://` for TLS, or
	// `unix://[user:password@]/path/to/socket[?db=0]`. It takes the place of `address`, `username`, `password` and `db`.
	// Default: none, either `url` or `address` is required.
	URL string `json:"url,omitempty"`

	// Where the server is, as `host:port` or as the path of a unix socket. With `sentinel` the sentinels, with `cluster`
	// some nodes of the cluster; several may also stand in one text, separated by commas. Default: none, either `url` or
	// `address` is required.
	Address []string `json:"address,omitempty"`

	// The user of the server's access control list. Default: the server's default user.
	Username string `json:"username,omitempty"`

	// The user's password. Default: none.
	Password string `json:"password,omitempty"`

	// The number of the database, in quotes so that it can be a placeholder; a cluster has none but `0`. Default: `0`.
	DB string `json:"db,omitempty"`

	// Connect with TLS, to sentinels too; `{}` does so with the system's certificate authorities. Default: no TLS, unless
	// `url` begins with `rediss://`.
	TLS *TLS `json:"tls,omitempty"`

	// The name under which Sentinel knows the master. Default: none, the server is connected to directly.
	Sentinel string `json:"sentinel,omitempty"`

	// The user name for the sentinels themselves. Default: the sentinels' default user.
	SentinelUsername string `json:"sentinel_username,omitempty"`

	// The password for the sentinels themselves. Default: none.
	SentinelPassword string `json:"sentinel_password,omitempty"`

	// Whether the server is a Redis Cluster. Default: `false`.
	Cluster bool `json:"cluster,omitempty"`

	// The first part of every key, for several installations in one database. Default: `webhook_dedup`.
	Prefix string `json:"prefix,omitempty"`

	// Wait until replicas have a completion before the provider is answered. It makes it less likely that a failover
	// forgets one, and never fails a delivery: what was not confirmed in time is counted and logged. Default: no waiting.
	Replicas *Replicas `json:"replicas,omitempty"`

	settings settings
	options  *redis.UniversalOptions
}

// TLS is how to connect with TLS.
type TLS struct {
	// A file of PEM certificates of the authorities that are trusted, in place of the system's. Default: the system's.
	CA string `json:"ca,omitempty"`

	// A file with this client's PEM certificate, for servers that ask for one. Default: none.
	Cert string `json:"cert,omitempty"`

	// A file with the private key of `cert`. Default: none, required with `cert`.
	Key string `json:"key,omitempty"`

	// The name that the server's certificate must have. Default: the host that is connected to.
	ServerName string `json:"server_name,omitempty"`
}

// Replicas is how completions wait for replication.
type Replicas struct {
	// How many replicas must have a completion. Default: none, it is required.
	Count int `json:"count,omitempty"`

	// How long to wait for them, from 1ms to 4s. It ends earlier where the handler's `store_timeout` does. Default: none,
	// it is required.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup.stores.redis",
		New: func() caddy.Module { return new(Store) },
	}
}

// Provision reads the configuration and the files that it names. It does not connect.
func (s *Store) Provision(caddy.Context) (err error) {
	if s.settings, err = s.resolve(); err != nil {
		return err
	}
	s.options, err = s.settings.options()
	return err
}

// Identity is the key by which routes and configurations share one open store. It shows neither server nor password.
func (s *Store) Identity() string {
	text, err := json.Marshal(s.settings)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	sum := sha256.Sum256(text)
	return "redis:" + hex.EncodeToString(sum[:])
}

// OpenStore returns the store; it connects with the first operation, or with the look at the server's settings that it
// takes in the background. The store is a [ReplicationCounter].
func (s *Store) OpenStore(log *zap.Logger) (claim.Store, error) {
	quiet()
	options, errs := *s.options, &explainer{secrets: s.settings.secrets()} // go-redis completes the options that it is given
	options.Dialer = (&dialer{options.DialTimeout, options.TLSConfig, errs}).dial
	client := newClient(&options)
	store, err := newStore(client, s.settings.Prefix)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening redis: %w", err), client.Close())
	}
	store.errors = errs
	if r := s.Replicas; r != nil {
		store.replicas = newReplicas(r.Count, s.settings.ReplicaTimeout, log)
	}
	store.adviser.start(store, log)
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
	_ ReplicationCounter    = (*store)(nil)
)
