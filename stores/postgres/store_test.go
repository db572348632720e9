//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/claim/claimtest"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
)

var background = context.Background()

// fast is for servers that need not survive anything.
const fast = "fsync=off"

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

func key(id string) string { return "prod:stripe:host/hook:" + id }

func ask(id string, token claim.Token) claim.Claim {
	return claim.Claim{Key: key(id), Token: token, Lease: time.Hour, Keep: time.Hour, EventType: "paid", BodySHA256: [32]byte{1}}
}

func mustClaim(t testing.TB, s claim.Store, id string, token claim.Token, want claim.ClaimOutcome) claim.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, 30*time.Second)
	defer cancel()
	got, r, err := s.Claim(ctx, ask(id, token))
	if err != nil || got != want {
		t.Fatalf("claim %q: %s, %v, want %s", id, got, err, want)
	}
	return r
}

func mustComplete(t testing.TB, s claim.Store, id string, token claim.Token) {
	t.Helper()
	if _, err := s.Complete(background, claim.Completion{Key: key(id), Token: token, TTL: time.Hour, Status: 200}); err != nil {
		t.Fatalf("complete %q: %v", id, err)
	}
}

// every calls each operation and fails if one succeeds or outlasts its context.
func every(t testing.TB, s claim.Store, bound time.Duration) {
	t.Helper()
	token := claim.NewToken()
	for name, op := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error { _, _, err := s.Claim(ctx, ask("x", token)); return err },
		"renew": func(ctx context.Context) error {
			return s.Renew(ctx, claim.Renewal{Key: key("x"), Token: token, Lease: time.Hour, Keep: time.Hour})
		},
		"complete": func(ctx context.Context) error {
			_, err := s.Complete(ctx, claim.Completion{Key: key("x"), Token: token, TTL: time.Hour})
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := s.Release(ctx, claim.Release{Key: key("x"), Token: token, Keep: time.Hour})
			return err
		},
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, key("x")); return err },
		"forget": func(ctx context.Context) error { _, err := s.Forget(ctx, key("x")); return err },
		"list":   func(ctx context.Context) error { _, err := s.List(ctx, claim.Query{}); return err },
		"stats":  func(ctx context.Context) error { _, err := s.Stats(ctx); return err },
		"ping":   s.Ping,
	} {
		ctx, cancel := context.WithTimeout(background, bound)
		start := time.Now()
		err := op(ctx)
		cancel()
		if err == nil || errors.Is(err, claim.ErrLeaseLost) || errors.Is(err, claim.ErrNotFound) {
			t.Errorf("%s: %v, an answer", name, err)
		}
		if took := time.Since(start); took > bound+250*time.Millisecond {
			t.Errorf("%s took %s, its bound is %s", name, took, bound)
		}
	}
}

func recovers(t testing.TB, s claim.Store) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		_, _, err = s.Claim(ctx, ask("recovers", claim.NewToken()))
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatalf("it does not recover: %v", err)
}

func TestContract(t *testing.T) {
	server := testpostgres.Start(t, fast)
	shared := openTest(t, Store{DSN: server.DSN()})
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return shared }})
}

func TestContractBehindPgBouncer(t *testing.T) {
	bouncer := testpostgres.Bouncer(t, testpostgres.Start(t, fast), 5)
	shared := openTest(t, Store{DSN: bouncer})
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return shared }})
}

// TestContractInStrictIsolation: for a role whose transactions are stricter than PostgreSQL's default.
func TestContractInStrictIsolation(t *testing.T) {
	server := testpostgres.Start(t, fast)
	strict := func(level string) *store {
		role := strings.ReplaceAll(level, " ", "_")
		server.Exec("CREATE ROLE "+role+" LOGIN", "GRANT ALL ON SCHEMA public TO "+role, "ALTER ROLE "+role+" SET default_transaction_isolation TO '"+level+"'")
		return openTest(t, Store{DSN: server.As(role), Table: role})
	}
	repeatable := strict("repeatable read")
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return repeatable }})
	for _, s := range []*store{repeatable, strict("serializable")} {
		runs, _ := storm(t, []*store{s}, s.gate.table, 20, 0.5, 0, time.Hour)
		t.Logf("%d runs of 20 events", runs)
	}
}

// TestModes: each way to send statements that a DSN may ask for.
func TestModes(t *testing.T) {
	server := testpostgres.Start(t, fast)
	for _, dsn := range []string{server.DSN(), testpostgres.Bouncer(t, server, 3)} {
		for _, mode := range []string{"cache_statement", "cache_describe", "exec", "simple_protocol"} {
			s := openTest(t, Store{DSN: dsn + "&default_query_exec_mode=" + mode})
			for i := range 10 {
				id, token := fmt.Sprint(mode, i, dsn), claim.NewToken()
				mustClaim(t, s, id, token, claim.Granted)
				if err := s.Renew(background, claim.Renewal{Key: key(id), Token: token, Lease: time.Minute, Keep: time.Hour}); err != nil {
					t.Error(mode, err)
				}
				mustComplete(t, s, id, token)
				if r := mustClaim(t, s, id, claim.NewToken(), claim.Duplicate); r.Token != token || r.BodySHA256 != [32]byte{1} || r.EventType != "paid" {
					t.Errorf("%s: %+v", mode, r)
				}
				if p, err := s.List(background, claim.Query{Prefix: key(id)}); err != nil || len(p.Records) != 1 {
					t.Errorf("%s: listed %d, %v", mode, len(p.Records), err)
				}
				if _, err := s.Release(background, claim.Release{Key: key("r" + id), Token: token, Keep: time.Hour}); err != nil {
					t.Error(mode, err)
				}
				if _, err := s.Stats(background); err != nil {
					t.Error(mode, err)
				}
				if _, err := s.prune(background); err != nil {
					t.Error(mode, err)
				}
			}
		}
	}
}

func TestReadableRow(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	token := claim.NewToken()
	mustClaim(t, s, "evt_1:part", token, claim.Granted)
	mustComplete(t, s, "evt_1:part", token)
	mustClaim(t, s, "evt_1:part", claim.NewToken(), claim.Duplicate)
	got := server.Exec(`SELECT environment, provider, scope, event_id, state, attempts, duplicates, event_type, status, long_key, response,
		lease, lease_until, updated_at >= first_seen, keep_until > updated_at, encode(payload_hash, 'hex') FROM webhook_dedup_events`)
	want := "prod|stripe|host/hook|evt_1:part|processed|1|1|paid|200|||||t|t|01" + strings.Repeat("00", 31)
	if got != want {
		t.Errorf("row  %s\nwant %s", got, want)
	}
}

func TestLongKeys(t *testing.T) {
	s := openTest(t, Store{DSN: testpostgres.Start(t, fast).DSN()})
	noise := func(n int, seed byte) string {
		var b strings.Builder
		for sum := byte(seed); b.Len() < n; sum = sum*167 + 13 {
			b.WriteByte('!' + sum%89)
		}
		return claim.EncodePart(b.String())[:n]
	}
	var keys []string
	for i, n := range []int{100, partMax, partMax + 1, 2000, claim.MaxKey - 20} {
		for seed := range 2 {
			keys = append(keys, fmt.Sprintf("prod:shop:/%s:evt_%d", noise(n, byte(seed)), i), "prod:shop:/:"+noise(n, byte(seed)))
		}
	}
	keys = append(keys, "prod:shop:"+strings.Repeat("\xff", 8000)+":evt", "e:p:s:"+strings.Repeat("é\x00", 300))
	for _, k := range keys {
		got, r, err := s.Claim(background, claim.Claim{Key: k, Token: claim.NewToken(), Lease: time.Hour, Keep: time.Hour})
		if err != nil || got != claim.Granted || r.Key != k {
			t.Errorf("a key of %d bytes: %s, %v", len(k), got, err)
		}
		if r, err := s.Get(background, k); err != nil || r.Key != k {
			t.Errorf("a key of %d bytes: %v", len(k), err)
		}
		parts, _ := claim.SplitKey(k)
		for _, q := range []claim.Query{{Prefix: k}, {Prefix: k[:len(k)-1]}, {EventID: parts.EventID, Provider: parts.Provider}} {
			p, err := s.List(background, q)
			if err != nil || !slices.ContainsFunc(p.Records, func(r claim.Record) bool { return r.Key == k }) {
				t.Errorf("a key of %d bytes: listed %d others, %v", len(k), len(p.Records), err)
			}
		}
	}
	seen := map[string]bool{}
	for q := (claim.Query{Limit: 3}); ; {
		p, err := s.List(background, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Records {
			seen[r.Key] = true
		}
		if q.Cursor = p.Cursor; q.Cursor == "" {
			break
		}
	}
	if len(seen) != len(keys) {
		t.Errorf("listed %d keys, want %d", len(seen), len(keys))
	}
	if _, _, err := s.Claim(background, claim.Claim{Key: "nokey", Lease: time.Hour, Keep: time.Hour}); !errors.Is(err, claim.ErrArgument) {
		t.Errorf("a key without parts: %v", err)
	}
}

func TestListLooksAtABoundedNumberOfRows(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	if err := s.Ping(background); err != nil {
		t.Fatal(err)
	}
	server.Exec(`INSERT INTO webhook_dedup_events (event_id, provider, scope, environment, state, token, attempts, duplicates, first_seen, updated_at, keep_until)
		SELECT 'evt_' || i, CASE i WHEN 30000 THEN 'rare' ELSE 'stripe' END, '', '', 'processed', gen_random_uuid(), 1, 0, now(), now(), now() + interval '1 day'
		FROM generate_series(1, 30000) i`)
	pages, found := 0, 0
	for q := (claim.Query{Provider: "rare"}); ; {
		p, err := s.List(background, q)
		if err != nil {
			t.Fatal(err)
		}
		pages, found = pages+1, found+len(p.Records)
		if q.Cursor = p.Cursor; q.Cursor == "" {
			break
		}
	}
	if pages < 3 || found != 1 {
		t.Errorf("%d pages, %d records", pages, found)
	}
}

func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	s := openTest(t, Store{DSN: "postgres://u:s3cret@" + l.Addr().String() + "/db?sslmode=disable&connect_timeout=1"})
	every(t, s, 200*time.Millisecond)
}

func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN(), MaxConnections: 3})
	holder := claim.NewToken()
	mustClaim(t, s, "k", holder, claim.Granted)
	server.Pause()
	every(t, s, 200*time.Millisecond)
	server.Resume()
	recovers(t, s)
	mustComplete(t, s, "k", holder)
}

// TestCloseOfAFrozenServer: a reload must not hang on a server that does.
func TestCloseOfAFrozenServer(t *testing.T) {
	t.Parallel()
	server := testpostgres.Start(t, fast)
	m := Store{DSN: server.DSN()}
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	server.Pause()
	every(t, s, 100*time.Millisecond)
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 2*closeTimeout {
		t.Errorf("closing took %s", took)
	} else {
		t.Logf("closed after %s", took.Round(time.Millisecond))
	}
	server.Resume()
}

func TestDeadServer(t *testing.T) {
	t.Parallel()
	server := testpostgres.Start(t)
	s := openTest(t, Store{DSN: server.DSN()})
	token := claim.NewToken()
	mustClaim(t, s, "k", token, claim.Granted)
	mustComplete(t, s, "k", token)
	mustClaim(t, s, "held", claim.NewToken(), claim.Granted)
	server.Kill()
	for range 3 {
		every(t, s, 300*time.Millisecond)
	}
	// One that begins while the server is away waits for it.
	late := openTest(t, Store{DSN: server.DSN()})
	every(t, late, 300*time.Millisecond)
	server.Restart()
	recovers(t, s)
	recovers(t, late)
	mustClaim(t, s, "k", claim.NewToken(), claim.Duplicate)
	mustClaim(t, late, "held", claim.NewToken(), claim.InFlight)
}

func TestConnectionLimits(t *testing.T) {
	server := testpostgres.Start(t, fast, "max_connections=9", "superuser_reserved_connections=3")
	server.Exec("CREATE ROLE app LOGIN", "GRANT ALL ON SCHEMA public TO app")
	s := openTest(t, Store{DSN: server.As("app"), MaxConnections: 2})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() { mustClaim(t, s, fmt.Sprint("evt_", i), claim.NewToken(), claim.Granted) })
	}
	wg.Wait()
	if n := server.Exec("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"); n != "2" {
		t.Errorf("%s connections, want 2", n)
	}
	// More than the server takes: some fail, clearly, and nothing hangs.
	greedy := openTest(t, Store{DSN: server.As("app"), MaxConnections: 50})
	var mu sync.Mutex
	failed := 0
	for i := range 64 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(background, 10*time.Second)
			defer cancel()
			if _, _, err := greedy.Claim(ctx, ask(fmt.Sprint("more_", i), claim.NewToken())); err != nil {
				if !strings.Contains(err.Error(), "lower max_connections") {
					t.Errorf("claim: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				failed++
			}
		})
	}
	wg.Wait()
	if failed == 0 {
		t.Error("the server was not full")
	}
	recovers(t, greedy)
}

func TestClosedConnectionsAreReplaced(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN(), MaxConnections: 4})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() { mustClaim(t, s, fmt.Sprint("evt_", i), claim.NewToken(), claim.Granted) })
	}
	wg.Wait()
	server.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'caddy webhook_dedup'")
	recovers(t, s)
}

func TestStatementsThatWereDroppedAreMadeAgain(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	server.Exec("DROP TABLE webhook_dedup_events")
	recovers(t, s)
}

func TestFullOrReadOnlyServerAnswersDuplicates(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN(), MaxConnections: 1})
	done := claim.NewToken()
	mustClaim(t, s, "done", done, claim.Granted)
	mustComplete(t, s, "done", done)
	server.Exec("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, _, err := s.Claim(background, ask("new", claim.NewToken()))
		if err != nil && strings.Contains(err.Error(), "target_session_attrs=read-write") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("claim on a read-only server: %v", err)
		}
		s.Forget(background, key("new"))
	}
	if r := mustClaim(t, s, "done", claim.NewToken(), claim.Duplicate); r.State != claim.Processed {
		t.Errorf("answered with %+v", r)
	}
	mustClaim(t, s, "done", done, claim.ProcessedBySelf)
}

// TestClockSetBack moves the deadline instead of the clock.
func TestClockSetBack(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	c := ask("k", claim.NewToken())
	c.Lease = 200 * time.Millisecond
	if _, _, err := s.Claim(background, c); err != nil {
		t.Fatal(err)
	}
	server.Exec("UPDATE webhook_dedup_events SET lease_until = lease_until + interval '1 hour'")
	if r, err := s.Get(background, c.Key); err != nil || r.Remaining != c.Lease {
		t.Errorf("remaining %s, %v, want one lease", r.Remaining, err)
	}
	if r := mustClaim(t, s, "k", claim.NewToken(), claim.InFlight); r.Remaining > c.Lease {
		t.Errorf("remaining %s, want at most one lease", r.Remaining)
	}
	time.Sleep(c.Lease + 20*time.Millisecond)
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
}

// TestDuplicatesDoNotWait: a processed row that somebody has locked is answered at once, and not counted.
func TestDuplicatesDoNotWait(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	token := claim.NewToken()
	mustClaim(t, s, "k", token, claim.Granted)
	mustComplete(t, s, "k", token)
	tx, err := s.pool.Begin(background)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(background)
	if _, err := tx.Exec(background, "SELECT FROM webhook_dedup_events FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if r := mustClaim(t, s, "k", claim.NewToken(), claim.Duplicate); r.Duplicates != 0 {
		t.Errorf("%d duplicates", r.Duplicates)
	}
	tx.Rollback(background)
	if r := mustClaim(t, s, "k", claim.NewToken(), claim.Duplicate); r.Duplicates != 1 {
		t.Errorf("%d duplicates", r.Duplicates)
	}
}

func TestForeignRowIsAnError(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN()})
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	server.Exec("ALTER TABLE webhook_dedup_events DROP CONSTRAINT webhook_dedup_events_state_check", "UPDATE webhook_dedup_events SET state = 'done'")
	if _, err := s.Get(background, key("k")); !errors.Is(err, errStrange) {
		t.Errorf("get: %v", err)
	}
}

// TestLostStatements: whoever stands between here and the server may answer that a prepared statement does not exist.
func TestLostStatements(t *testing.T) {
	server := testpostgres.Start(t, fast)
	s := openTest(t, Store{DSN: server.DSN(), MaxConnections: 1})
	mustClaim(t, s, "1", claim.NewToken(), claim.Granted)
	if s.unprepared.Load() {
		t.Error("statements are not prepared")
	}
	if _, err := s.pool.Exec(background, "DEALLOCATE ALL"); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, "2", claim.NewToken(), claim.Granted)
	if !s.unprepared.Load() {
		t.Error("statements are still prepared")
	}
	mustClaim(t, s, "2", claim.NewToken(), claim.InFlight)
}
