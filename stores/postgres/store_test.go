//go:build unix

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/claim/claimtest"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
)

var background = context.Background()

func openTest(t testing.TB, m Store) *store {
	t.Helper()
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*store)
}

func ask(key string, token claim.Token) claim.Claim {
	return claim.Claim{Key: "prod:stripe:host/hook:" + key, Token: token, Lease: time.Hour, Keep: time.Hour, EventType: "paid", BodySHA256: [32]byte{1}}
}

func TestContract(t *testing.T) {
	server := testpostgres.Start(t, "fsync=off")
	shared := openTest(t, Store{DSN: server.DSN()})
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return shared }})
}

func benchmark(b *testing.B, query string, run func(s *store, pb *testing.PB)) {
	s := openTest(b, Store{DSN: testpostgres.Start(b, "fsync=off").DSN() + query})
	if err := s.Ping(background); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) { run(s, pb) })
}

func BenchmarkClaimComplete(b *testing.B) {
	for name, query := range map[string]string{"exec": "", "cached": "&default_query_exec_mode=cache_statement"} {
		b.Run(name, func(b *testing.B) {
			benchmark(b, query, func(s *store, pb *testing.PB) {
				for pb.Next() {
					c := ask("", claim.NewToken())
					c.Key += token(c.Token)
					if _, _, err := s.Claim(background, c); err != nil {
						b.Error(err)
					}
					if _, err := s.Complete(background, claim.Completion{Key: c.Key, Token: c.Token, TTL: time.Hour}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
