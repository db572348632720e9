//go:build unix

package postgres

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
)

func TestNodesMakeTheTableAtOnce(t *testing.T) {
	server := testpostgres.Start(t, fast, "max_connections=200")
	for round := range 5 {
		table := fmt.Sprint("events_", round)
		var nodes []*store
		for range 12 {
			nodes = append(nodes, openTest(t, Store{DSN: server.DSN(), Table: table, MaxConnections: 2}))
		}
		granted := 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, s := range nodes {
			wg.Go(func() {
				got, _, err := s.Claim(background, ask("k", claim.NewToken()))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if got == claim.Granted {
					granted++
				}
			})
		}
		wg.Wait()
		if granted != 1 {
			t.Errorf("%d grants", granted)
		}
	}
}

func TestDDL(t *testing.T) {
	server := testpostgres.Start(t, fast)
	for _, table := range []string{"Events", "hooks.events"} {
		server.Exec("CREATE SCHEMA IF NOT EXISTS hooks")
		ddl, err := DDL(table)
		if err != nil {
			t.Fatal(err)
		}
		server.Exec(ddl)
		user := "u" + strings.ToLower(table[:1])
		quoted, _ := quote(table)
		server.Exec("CREATE ROLE "+user+" LOGIN", "GRANT USAGE ON SCHEMA hooks TO "+user, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+quoted+" TO "+user)
		off := false
		s := openTest(t, Store{DSN: server.As(user), Table: table, Create: &off})
		mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
		if _, err := s.prune(background); err != nil {
			t.Error(err)
		}
	}
	for _, table := range []string{"", "a.b.c", "a b", `a"b`, "ä", "1a", ".a", "a.", strings.Repeat("a", 64), "a;DROP TABLE b"} {
		if ddl, err := DDL(table); err == nil {
			t.Errorf("table %q: %s", table, ddl)
		}
	}
}

// TestClearErrors: what stands in the way is named, with the remedy and without a secret.
func TestClearErrors(t *testing.T) {
	server := testpostgres.Start(t, fast)
	server.Exec(
		"CREATE ROLE secret LOGIN PASSWORD 's3cret'", "CREATE ROLE few LOGIN", "CREATE ROLE nothing LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"CREATE TABLE foreign_shape (id int)", "CREATE TABLE nearly (event_id int, provider text)", "CREATE VIEW a_view AS SELECT 1",
	)
	later, _ := DDL("later")
	server.Exec(later, "COMMENT ON TABLE later IS 'webhook_dedup 7'")
	mine, _ := DDL("mine")
	server.Exec(mine, "GRANT SELECT ON mine TO few")
	off := false
	for name, c := range map[string]struct {
		module Store
		want   []string
	}{
		"wrong password": {Store{DSN: server.As("secret:s3cret-wrong")}, []string{"password authentication failed"}},
		"wrong database": {Store{DSN: strings.Replace(server.DSN(), "/postgres?", "/s3cret?", 1)}, []string{"does not exist"}},
		"wrong host":     {Store{DSN: "postgres://u:s3cret@does-not-exist.invalid/db"}, []string{"does-not-exist.invalid"}},
		"nobody there":   {Store{DSN: "postgres://u:s3cret@127.0.0.1:1/db"}, []string{"refused"}},
		"TLS to a plain port": {Store{DSN: strings.Replace(server.As("postgres:s3cret"), "sslmode=disable", "sslmode=require", 1)},
			[]string{"TLS"}},
		"no right to create": {Store{DSN: server.As("nothing"), Table: "new"}, []string{`"new"`, "may not make", "statements in the log"}},
		"create off":         {Store{DSN: server.DSN(), Table: "new", Create: &off}, []string{"create is off", "statements in the log"}},
		"no such schema":     {Store{DSN: server.DSN(), Table: "no_schema.new"}, []string{"make the schema first"}},
		"few rights":         {Store{DSN: server.As("few"), Table: "mine"}, []string{"SELECT, INSERT, UPDATE and DELETE"}},
		"foreign shape":      {Store{DSN: server.DSN(), Table: "foreign_shape"}, []string{"not one of webhook_dedup", "event_id", "name another"}},
		"nearly the shape":   {Store{DSN: server.DSN(), Table: "nearly"}, []string{"no column event_id of type text"}},
		"a view":             {Store{DSN: server.DSN(), Table: "a_view"}, []string{"not one of webhook_dedup"}},
		"later version":      {Store{DSN: server.DSN(), Table: "later"}, []string{"version 7", "upgrade"}},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			if err := c.module.Provision(caddy.Context{}); err != nil {
				t.Fatal(err)
			}
			s, err := c.module.OpenStore(zap.New(core))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 {
				_, _, err = s.Claim(background, ask("k", claim.NewToken()))
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q does not tell %q", err, want)
					}
				}
				if name != "wrong database" && strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error %q tells the secret", err)
				}
			}
			if strings.Contains(err.Error(), "in the log") && logs.FilterMessageSnippet("missing").Len() != 1 {
				t.Errorf("logged %v", logs.All())
			}
		})
	}
}

func TestPruning(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	if err := s.Ping(background); err != nil {
		t.Fatal(err)
	}
	server.Exec(`INSERT INTO webhook_dedup_events (event_id, provider, scope, environment, state, token, attempts, duplicates, first_seen, updated_at, keep_until)
		SELECT 'evt_' || i, 'stripe', '', '', 'processed', gen_random_uuid(), 1, 0, now(), now(), now() + CASE WHEN i % 10 = 0 THEN 1 ELSE -1 END * interval '1 hour'
		FROM generate_series(1, 50000) i`)
	// While another node has the lock there is nothing to do.
	tx, err := s.pool.Begin(background)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(background, "SELECT pg_advisory_xact_lock($1::bigint)", lockNumber("prune", s.gate.table)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.prune(background); n != 0 || err != nil {
		t.Errorf("deleted %d, %v, without the lock", n, err)
	}
	// Nor for a row that somebody else has.
	if _, err := tx.Exec(background, "SELECT FROM webhook_dedup_events WHERE event_id = 'evt_1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(background); err != nil {
		t.Fatal(err)
	}
	tx, _ = s.pool.Begin(background)
	if _, err := tx.Exec(background, "SELECT FROM webhook_dedup_events WHERE event_id = 'evt_1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if n, err := s.prune(background); n != 44999 || err != nil {
		t.Errorf("deleted %d, %v, want 44999", n, err)
	}
	t.Logf("44999 rows in %s", time.Since(start).Round(time.Millisecond))
	tx.Rollback(background)
	if n, err := s.prune(background); n != 1 || err != nil {
		t.Errorf("deleted %d, %v, want 1", n, err)
	}
	if n := server.Exec("SELECT count(*) FROM webhook_dedup_events"); n != "5000" {
		t.Errorf("%s rows are left", n)
	}
}

// TestEverythingExpires is a day in seconds: nothing is left, by the nodes' own pruning, behind PgBouncer too.
func TestEverythingExpires(t *testing.T) {
	server := testpostgres.Start(t, fast)
	m := Store{DSN: testpostgres.Bouncer(t, server, 5)}
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	var nodes []*store
	for range 3 {
		s, err := m.OpenStore(zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		s.Close() // only its pool is of use: the pruning is to be faster
		opened, err := m.OpenStore(zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		old := opened.(*store)
		old.stop()
		old.background.Wait()
		fast := open(old.pool, m.table, true, 100*time.Millisecond, zap.NewNop())
		t.Cleanup(func() { fast.Close() })
		nodes = append(nodes, fast)
	}
	var wg sync.WaitGroup
	for n, s := range nodes {
		for w := range 4 {
			wg.Go(func() {
				for i := range 250 {
					c := ask(fmt.Sprint(n, "_", w, "_", i), claim.NewToken())
					c.Lease, c.Keep = time.Second, time.Second
					if _, _, err := s.Claim(background, c); err != nil {
						t.Error(err)
					}
					if i%3 == 0 {
						s.Complete(background, claim.Completion{Key: c.Key, Token: c.Token, TTL: time.Second})
					} else if i%3 == 1 {
						s.Release(background, claim.Release{Key: c.Key, Token: c.Token, Keep: time.Second})
					}
				}
			})
		}
	}
	wg.Wait()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n := server.Exec("SELECT count(*) FROM webhook_dedup_events")
		if n == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s rows are left", n)
		}
	}
}

func TestCloseStopsEverything(t *testing.T) {
	server := testpostgres.Start(t, fast)
	before := runtime.NumGoroutine()
	for i := range 20 {
		m := Store{DSN: server.DSN()}
		if err := m.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		s, err := m.OpenStore(zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		mustClaim(t, s, fmt.Sprint("evt_", i), claim.NewToken(), claim.Granted)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+5; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, were %d", runtime.NumGoroutine(), before)
		}
	}
	if n := server.Exec("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'caddy webhook_dedup'"); n != "0" {
		t.Errorf("%s connections are open", n)
	}
}

// TestDocumentedTable: what the documentation gives to administrators is what the store makes.
func TestDocumentedTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	ddl, err := DDL(defaultTable)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```sql\n"+ddl+"```\n") {
		t.Error("docs/stores.md has other statements")
	}
}
