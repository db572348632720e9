//go:build unix

package proof

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/file"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/memory"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/postgres"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/redis"
)

// module is what a store's guest module is to Caddy.
type module interface {
	Provision(caddy.Context) error
	OpenStore(*zap.Logger) (claim.Store, error)
}

func openStore(t testing.TB, m module) claim.Store {
	t.Helper()
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// server is one that can be hurt.
type server interface {
	Pause()
	Resume()
	Kill()
	Restart()
}

// backend is a store, as several processes open it, and its server if it is a remote one.
type backend struct {
	name   string
	remote bool
	start  func(t testing.TB) (open func() claim.Store, s server)
}

func backends() []backend {
	local := func(m func(t testing.TB) module) func(t testing.TB) (func() claim.Store, server) {
		return func(t testing.TB) (func() claim.Store, server) {
			s := openStore(t, m(t)) // one process has it
			return func() claim.Store { return s }, nil
		}
	}
	return []backend{
		{"memory", false, local(func(t testing.TB) module { return &memory.Store{Name: t.Name()} })},
		{"file", false, local(func(t testing.TB) module { return &file.Store{Path: filepath.Join(t.TempDir(), "events.db")} })},
		{"redis", true, func(t testing.TB) (func() claim.Store, server) {
			// What it has answered it still knows after a crash.
			s := testredis.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			return func() claim.Store { return openStore(t, &redis.Store{URL: s.URL()}) }, s
		}},
		{"postgres", true, func(t testing.TB) (func() claim.Store, server) {
			s := testpostgres.Start(t)
			return func() claim.Store { return openStore(t, &postgres.Store{DSN: s.DSN()}) }, s
		}},
		{"pgbouncer", true, func(t testing.TB) (func() claim.Store, server) {
			s := testpostgres.Start(t)
			dsn := testpostgres.Bouncer(t, s, 8)
			return func() claim.Store { return openStore(t, &postgres.Store{DSN: dsn}) }, s
		}},
	}
}

func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	_ = cancel // the operation is over long before, and a leaked timer ends by itself
	return ctx
}
