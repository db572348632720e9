//go:build unix

package redis

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

var background = context.Background()

func openTest(t testing.TB, url string) *store {
	t.Helper()
	return openStore(t, &Store{URL: url}, zap.NewNop())
}

func openStore(t testing.TB, m *Store, log *zap.Logger) *store {
	t.Helper()
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenStore(log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*store)
}

func ask(key string, token claim.Token) claim.Claim {
	return claim.Claim{Key: key, Token: token, Lease: time.Hour, Keep: time.Hour, EventType: "paid", BodySHA256: [32]byte{1}}
}

func mustClaim(t testing.TB, s claim.Store, key string, token claim.Token, want claim.ClaimOutcome) claim.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, 30*time.Second)
	defer cancel()
	got, r, err := s.Claim(ctx, ask(key, token))
	if err != nil || got != want {
		t.Fatalf("claim %q: %s, %v, want %s", key, got, err, want)
	}
	return r
}

func mustComplete(t testing.TB, s claim.Store, key string, token claim.Token) {
	t.Helper()
	if _, err := s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour, Status: 200}); err != nil {
		t.Fatalf("complete %q: %v", key, err)
	}
}

func TestEveryStepLeavesAnExpiry(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	check := func(step string) {
		t.Helper()
		if ttl := s.client.PTTL(background, s.prefix+"k").Val(); ttl <= 0 || ttl > time.Hour {
			t.Errorf("after %s the key expires in %s", step, ttl)
		}
	}
	release := func(token claim.Token) {
		t.Helper()
		if _, err := s.Release(background, claim.Release{Key: "k", Token: token, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	token := claim.NewToken()
	release(token)
	check("a release that found nothing")
	token = claim.NewToken()
	mustClaim(t, s, "k", token, claim.Granted)
	check("a claim")
	if err := s.client.Persist(background, s.prefix+"k").Err(); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, "k", token, claim.GrantedAgain)
	check("a claim sent again")
	s.client.Persist(background, s.prefix+"k")
	if err := s.Renew(background, claim.Renewal{Key: "k", Token: token, Lease: time.Minute, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	check("a renewal")
	release(token)
	check("a release")
	token = claim.NewToken()
	mustClaim(t, s, "k", token, claim.Granted)
	s.client.Persist(background, s.prefix+"k")
	mustComplete(t, s, "k", token)
	check("a completion")
}

// TestRecordIsSmall measures what docs/stores.md promises.
func TestRecordIsSmall(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	for response, most := range map[int]int64{0: 300, 50: 370, 200: 550, 1 << 10: 1700, 2 << 10: 2750, 64 << 10: 84_000} {
		key := fmt.Sprintf("production:stripe:hooks.example.com/stripe:evt_1MqqbKLt4dXK03v5qa%05d", response)
		c := ask(key, claim.NewToken())
		c.EventType = "payment_intent.succeeded"
		rand.Read(c.BodySHA256[:])
		if _, _, err := s.Claim(background, c); err != nil {
			t.Fatal(err)
		}
		done := claim.Completion{
			Key: key, Token: c.Token, TTL: time.Hour, Status: 200, EventType: c.EventType, BodySHA256: c.BodySHA256,
			Response: make([]byte, response),
		}
		rand.Read(done.Response)
		if _, err := s.Complete(background, done); err != nil {
			t.Fatal(err)
		}
		for range 20 { // counted duplicates are part of the record
			if _, r, err := s.Claim(background, ask(key, claim.NewToken())); err != nil || !bytes.Equal(r.Response, done.Response) {
				t.Fatalf("a response of %d bytes came back with %d, %v", response, len(r.Response), err)
			}
		}
		n, err := s.client.MemoryUsage(background, s.prefix+key, 0).Result() // 0: an estimate from samples is far off
		t.Logf("with a response of %d bytes: %d bytes (%s)", response, n, s.client.ObjectEncoding(background, s.prefix+key).Val())
		if err != nil || n > most {
			t.Errorf("a record with a response of %d bytes takes %d bytes, %v; at most %d are promised", response, n, err, most)
		}
	}
}

// rights are what docs/stores.md tells to give to the store's user.
var rights = []string{
	"-@all", "+eval", "+evalsha", "+time", "+hset", "+hmget", "+hincrby", "+hdel", "+pexpire", "+del", "+scan", "+ping", "+select",
}

// useEverything calls each operation, for a user who may not be allowed some.
func useEverything(t *testing.T, s *store) {
	t.Helper()
	for i := range 20 {
		key, token := fmt.Sprint("k", i), claim.NewToken()
		mustClaim(t, s, key, token, claim.Granted)
		if err := s.Renew(background, claim.Renewal{Key: key, Token: token, Lease: time.Minute, Keep: time.Hour}); err != nil {
			t.Error(err)
		}
		if i%2 == 0 {
			if _, err := s.Release(background, claim.Release{Key: key, Token: token, Keep: time.Hour}); err != nil {
				t.Error(err)
			}
			continue
		}
		mustComplete(t, s, key, token)
		mustClaim(t, s, key, claim.NewToken(), claim.Duplicate)
	}
	if p, err := s.List(background, claim.Query{}); err != nil || len(p.Records) != 20 {
		t.Errorf("list: %d records, %v", len(p.Records), err)
	}
	if stats, err := s.Stats(background); err != nil || stats.Counts[""][claim.Processed] != 10 {
		t.Error(stats, err)
	}
	if err := s.Ping(background); err != nil {
		t.Error(err)
	}
	if found, err := s.Forget(background, "k1"); err != nil || !found {
		t.Errorf("forget: %t, %v", found, err)
	}
}

func TestUserWithFewRights(t *testing.T) {
	server := testredis.Start(t, append([]string{
		"--requirepass", "admin-secret", "--user", "dedup", "on", ">p@ss/word", "~webhook_dedup:*",
	}, rights...)...)
	useEverything(t, openTest(t, "redis://dedup:p%40ss%2Fword@"+server.Addr+"/3"))
}

func TestScriptFlush(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	for i := range 30 {
		key, token := fmt.Sprint("evt_", i), claim.NewToken()
		for _, step := range []func(){
			func() { mustClaim(t, s, key, token, claim.Granted) },
			func() {
				if err := s.Renew(background, claim.Renewal{Key: key, Token: token, Lease: time.Minute, Keep: time.Hour}); err != nil {
					t.Fatal(err)
				}
			},
			func() { mustComplete(t, s, key, token) },
			func() {
				if p, err := s.List(background, claim.Query{Limit: 1000}); err != nil || len(p.Records) != i+1 {
					t.Fatalf("list: %d records, %v", len(p.Records), err)
				}
			},
			func() {
				if _, err := s.Release(background, claim.Release{Key: key + "r", Token: token, Keep: time.Millisecond}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Millisecond)
			},
		} {
			if err := s.client.ScriptFlush(background).Err(); err != nil {
				t.Fatal(err)
			}
			step()
		}
	}
	// In the middle of many that share their round trips.
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 50 {
				if w == 0 {
					s.client.ScriptFlush(background)
				}
				if got, _, err := s.Claim(background, ask(fmt.Sprint(w, "_", i), claim.NewToken())); err != nil || got != claim.Granted {
					t.Errorf("claim: %s, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestFullMemory(t *testing.T) {
	s := openTest(t, testredis.Start(t, "--maxmemory-policy", "noeviction").URL())
	done, held := claim.NewToken(), claim.NewToken()
	mustClaim(t, s, "done", done, claim.Granted)
	mustComplete(t, s, "done", done)
	mustClaim(t, s, "held", held, claim.Granted)
	limit := func(v string) {
		t.Helper()
		if err := s.client.ConfigSet(background, "maxmemory", v).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	for range 3 {
		if r := mustClaim(t, s, "done", claim.NewToken(), claim.Duplicate); r.State != claim.Processed || r.Token != done {
			t.Errorf("duplicate with record %+v", r)
		}
	}
	mustClaim(t, s, "held", claim.NewToken(), claim.InFlight)
	before, err := s.client.HGetAll(background, s.prefix+"held").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"claim": func() error { _, _, err := s.Claim(background, ask("new", claim.NewToken())); return err }(),
		"renew": s.Renew(background, claim.Renewal{Key: "held", Token: held, Lease: time.Minute, Keep: time.Hour}),
		"complete": func() error {
			_, err := s.Complete(background, claim.Completion{Key: "held", Token: held, TTL: time.Hour})
			return err
		}(),
		"release": func() error {
			_, err := s.Release(background, claim.Release{Key: "held", Token: held, Keep: time.Hour})
			return err
		}(),
	} {
		if err == nil || errors.Is(err, claim.ErrLeaseLost) {
			t.Errorf("%s on a full server: %v", name, err)
		}
	}
	limit("0")
	after, err := s.client.HGetAll(background, s.prefix+"held").Result()
	if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a full server left %q, was %q", after, before)
	}
	if _, err := s.Get(background, "new"); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("a full server left something of a claim: %v", err)
	}
	mustComplete(t, s, "held", held)
}

// every calls each operation with the usual bound of the handler and fails where one takes much longer.
func every(t *testing.T, s *store, bound time.Duration) {
	t.Helper()
	token := claim.NewToken()
	var wg sync.WaitGroup
	for name, op := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error { _, _, err := s.Claim(ctx, ask("frozen_claim", token)); return err },
		"renew": func(ctx context.Context) error {
			return s.Renew(ctx, claim.Renewal{Key: "k", Token: token, Lease: time.Minute, Keep: time.Hour})
		},
		"complete": func(ctx context.Context) error {
			_, err := s.Complete(ctx, claim.Completion{Key: "frozen_complete", Token: token, TTL: time.Hour})
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := s.Release(ctx, claim.Release{Key: "frozen_release", Token: token, Keep: time.Hour})
			return err
		},
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"forget": func(ctx context.Context) error { _, err := s.Forget(ctx, "frozen_forget"); return err },
		"list":   func(ctx context.Context) error { _, err := s.List(ctx, claim.Query{}); return err },
		"stats":  func(ctx context.Context) error { _, err := s.Stats(ctx); return err },
		"ping":   s.Ping,
	} {
		for range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(background, bound)
				defer cancel()
				start := time.Now()
				err := op(ctx)
				if err == nil || errors.Is(err, claim.ErrLeaseLost) || errors.Is(err, claim.ErrNotFound) {
					t.Errorf("%s: %v from a server that does not answer", name, err)
				}
				if took := time.Since(start); took > bound+2*time.Second {
					t.Errorf("%s took %s", name, took)
				}
			})
		}
	}
	wg.Wait()
}

// recovers fails if the store does not work soon, and says after how long it did.
func recovers(t *testing.T, s *store) {
	t.Helper()
	start := time.Now()
	for {
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		_, _, err := s.Claim(ctx, ask("recovery", claim.NewToken()))
		cancel()
		if err == nil {
			break
		}
		if time.Since(start) > 15*time.Second {
			t.Fatal("no recovery:", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("recovered after %s", time.Since(start).Round(time.Millisecond))
}

func TestFrozenServer(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?read_timeout=60s&write_timeout=60s&dial_timeout=60s&pool_timeout=60s&max_retries=10", "?read_timeout=-1&write_timeout=-1"} {
		server := testredis.Start(t)
		s := openTest(t, server.URL()+query)
		token := claim.NewToken()
		mustClaim(t, s, "k", token, claim.Granted)
		server.Pause()
		every(t, s, 500*time.Millisecond)
		every(t, s, 500*time.Millisecond) // now no connection is left
		server.Resume()
		recovers(t, s)
		mustComplete(t, s, "k", token)

		// A store that was never connected.
		s = openTest(t, server.URL()+query)
		server.Pause()
		every(t, s, 500*time.Millisecond)
		server.Resume()
		recovers(t, s)
	}
}

// TestGhostClaim gives a claim up that the frozen server then carries out all the same.
func TestGhostClaim(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	s := openTest(t, server.URL())
	mustClaim(t, s, "warm", claim.NewToken(), claim.Granted)
	ghost := claim.NewToken()
	server.Pause()
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	if _, _, err := s.Claim(ctx, ask("k", ghost)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("claim: %v", err)
	}
	server.Resume()
	release := claim.Release{Key: "k", Token: ghost, Keep: time.Hour}
	for deadline := time.Now().Add(20 * time.Second); ; {
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		_, err := s.Release(ctx, release)
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	// Whether the ghost came before the release or comes after it: the retry is granted, and keeps its claim.
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	time.Sleep(50 * time.Millisecond)
	if got, _, err := s.Claim(background, ask("k", ghost)); err != nil || got != claim.InFlight {
		t.Errorf("the ghost once more: %s, %v", got, err)
	}
}

// TestRawGhostClaim applies a claim behind its release, as a frozen server may.
func TestRawGhostClaim(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	ghost := claim.NewToken()
	if got, err := s.Release(background, claim.Release{Key: "k", Token: ghost, Keep: time.Hour}); err != nil || got != claim.Voided {
		t.Fatalf("release: %d, %v", got, err)
	}
	raw, err := s.client.Eval(background, claimSource, []string{s.prefix + "k"}, ghost[:], 30_000, 3_600_000, "", "", "").Slice()
	if err != nil || raw[0] != int64(claim.Refused) {
		t.Fatalf("ghost: %v, %v", raw, err)
	}
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
}

func TestScriptsCheckTheirArguments(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	token := claim.NewToken()
	mustClaim(t, s, "k", token, claim.Granted)
	before := s.client.HGetAll(background, s.prefix+"k").Val()
	for source, calls := range map[string][][]any{
		claimSource:    {{}, {"short", 1, 1, "", "", ""}, {token[:], 0, 1, "", "", ""}, {token[:], 2, 1, "", "", ""}, {token[:], "x", 1, "", "", ""}, {token[:], 1, 1, "", ""}},
		renewSource:    {{}, {"short", 1, 1}, {token[:], 0, 1}, {token[:], 2, 1}, {token[:], 1}},
		completeSource: {{}, {"short", 1, 200, "", "", "", ""}, {token[:], 0, 200, "", "", "", ""}, {token[:], "x", 200, "", "", "", ""}, {token[:], 1}},
		releaseSource:  {{}, {"short", 1, 500}, {token[:], 0, 500}, {token[:], "x", 500}, {token[:], 1}},
	} {
		for _, args := range calls {
			err := s.client.Eval(background, source, []string{s.prefix + "k"}, args...).Err()
			if err == nil || !strings.Contains(err.Error(), "invalid argument") {
				t.Errorf("%.40q with %q: %v", source, args, err)
			}
		}
	}
	if after := s.client.HGetAll(background, s.prefix+"k").Val(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a wrong call changed the record to %q", after)
	}
}

// TestClockSetBack moves the deadline instead of the clock.
func TestClockSetBack(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	c := ask("k", claim.NewToken())
	c.Lease = 200 * time.Millisecond
	if _, _, err := s.Claim(background, c); err != nil {
		t.Fatal(err)
	}
	if err := s.client.HIncrBy(background, s.prefix+"k", "d", 3_600_000).Err(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(background, "k"); err != nil || r.Remaining != c.Lease {
		t.Errorf("remaining %s, %v, want one lease", r.Remaining, err)
	}
	if r := mustClaim(t, s, "k", claim.NewToken(), claim.InFlight); r.Remaining > c.Lease {
		t.Errorf("remaining %s, want at most one lease", r.Remaining)
	}
	time.Sleep(c.Lease + 20*time.Millisecond)
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
}

func TestForeignKeyIsAnError(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	s.client.Set(background, s.prefix+"text", "x", time.Hour)
	s.client.HSet(background, s.prefix+"hash", "s", "7", "t", "x")
	for _, key := range []string{"text", "hash"} {
		if _, err := s.Get(background, key); err == nil || errors.Is(err, claim.ErrNotFound) {
			t.Errorf("get %q: %v", key, err)
		}
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
	s := openTest(t, "redis://"+l.Addr().String())
	every(t, s, 500*time.Millisecond)
	every(t, s, 500*time.Millisecond)
}

func TestDeadServer(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	s := openTest(t, server.URL())
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	server.Kill()
	for range 5 {
		every(t, s, 500*time.Millisecond)
	}
	server.Restart()
	recovers(t, s)
}

// TestRoundTripsAreShared counts how often the server read from its connections while 64 deliveries claimed.
func TestRoundTripsAreShared(t *testing.T) {
	s := openTest(t, testredis.Start(t).URL())
	mustClaim(t, s, "warm", claim.NewToken(), claim.Granted)
	reads := func() (n int) {
		info, err := s.client.Info(background, "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(info) {
			fmt.Sscanf(line, "total_reads_processed:%d", &n)
		}
		return n
	}
	before := reads()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := range 50 {
				mustClaim(t, s, fmt.Sprint(w, "_", i), claim.NewToken(), claim.Granted)
			}
		})
	}
	wg.Wait()
	if n := reads() - before; n > 64*50/2 {
		t.Errorf("%d claims took %d reads of the server", 64*50, n)
	} else {
		t.Logf("%d claims took %d reads of the server", 64*50, n)
	}
}

func BenchmarkClaimComplete(b *testing.B) {
	s := openTest(b, testredis.Start(b).URL())
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			token := claim.NewToken()
			key := fmt.Sprintf("%x", token)
			s.Claim(background, ask(key, token))
			s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour})
		}
	})
}

func BenchmarkDuplicate(b *testing.B) {
	s := openTest(b, testredis.Start(b).URL())
	s.Complete(background, claim.Completion{Key: "k", Token: claim.NewToken(), TTL: time.Hour})
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Claim(background, ask("k", claim.NewToken()))
		}
	})
}

// TestCloseOfAFrozenServer: a reload must not hang on a server that does.
func TestCloseOfAFrozenServer(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	m := &Store{URL: server.URL()}
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenStore(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, "k", claim.NewToken(), claim.Granted)
	server.Pause()
	every(t, s.(*store), 100*time.Millisecond)
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("closing took %s", took)
	} else {
		t.Logf("closed after %s", took.Round(time.Millisecond))
	}
}
