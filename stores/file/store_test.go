package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/claim/claimtest"
)

// childEnv makes the test binary play another process on the file that it names.
const childEnv = "WEBHOOK_DEDUP_FILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		child(role, os.Getenv(childEnv+"_PATH"))
		return
	}
	os.Exit(m.Run())
}

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.UnixMilli(1_800_000_000_000)} }

func (c *fakeClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func eventFile(t *testing.T) string { return filepath.Join(t.TempDir(), "events.db") }

func openTest(t *testing.T, path string, o options) *store {
	t.Helper()
	s, err := open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	c := newClock()
	s := openTest(t, eventFile(t), options{now: c.time})
	defer s.Close()
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return s }, Advance: c.advance})
}

func TestContractInRealTime(t *testing.T) {
	s := openTest(t, eventFile(t), options{})
	defer s.Close()
	claimtest.Run(t, claimtest.Harness{Open: func(*testing.T) claim.Store { return s }})
}

var background = context.Background()

func ask(key string, token claim.Token) claim.Claim {
	return claim.Claim{Key: key, Token: token, Lease: time.Hour, Keep: time.Hour, EventType: "paid", BodySHA256: [32]byte{1}}
}

func mustClaim(t *testing.T, s claim.Store, key string, token claim.Token, want claim.ClaimOutcome) claim.Record {
	t.Helper()
	got, r, err := s.Claim(background, ask(key, token))
	if err != nil || got != want {
		t.Fatalf("claim %q: %s, %v, want %s", key, got, err, want)
	}
	return r
}

func mustComplete(t *testing.T, s claim.Store, key string, token claim.Token) {
	t.Helper()
	if _, err := s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour, Status: 200}); err != nil {
		t.Fatalf("complete %q: %v", key, err)
	}
}

func TestReopen(t *testing.T) {
	path := eventFile(t)
	s := openTest(t, path, options{})
	done, held, failed := claim.NewToken(), claim.NewToken(), claim.NewToken()
	mustClaim(t, s, "done", done, claim.Granted)
	mustComplete(t, s, "done", done)
	for range 3 {
		mustClaim(t, s, "done", claim.NewToken(), claim.Duplicate)
	}
	mustClaim(t, s, "held", held, claim.Granted)
	mustClaim(t, s, "failed", failed, claim.Granted)
	if _, err := s.Release(background, claim.Release{Key: "failed", Token: failed, Keep: time.Hour, Status: 500}); err != nil {
		t.Fatal(err)
	}
	before := map[string]claim.Record{}
	for _, key := range []string{"done", "held", "failed"} {
		before[key], _ = s.Get(background, key)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// The same process: its runs are still in flight.
	s = openTest(t, path, options{})
	for key, want := range before {
		got, err := s.Get(background, key)
		got.Remaining, want.Remaining = 0, 0
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q became %+v, %v, was %+v", key, got, err, want)
		}
	}
	mustClaim(t, s, "held", claim.NewToken(), claim.InFlight)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Another process: the first one must be dead, so its claims are free at once, and its history is kept.
	s = openTest(t, path, options{owner: owner{1}})
	defer s.Close()
	r := mustClaim(t, s, "held", claim.NewToken(), claim.Granted)
	if r.Attempts != 2 || !r.FirstSeen.Equal(before["held"].FirstSeen) {
		t.Errorf("taken over from a dead process: %+v", r)
	}
	mustClaim(t, s, "held", claim.NewToken(), claim.InFlight)
	if r := mustClaim(t, s, "done", claim.NewToken(), claim.Duplicate); r.Duplicates != 4 {
		t.Errorf("%d duplicates, want 4", r.Duplicates)
	}
}

// child is the other process of a test.
func child(role, path string) {
	s, err := open(path, options{})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	switch role {
	case "hold":
		fmt.Println("open")
		select {}
	case "complete":
		var n atomic.Int64
		for range 16 {
			go func() {
				for {
					key, token := fmt.Sprint("evt_", n.Add(1)), claim.NewToken()
					if _, _, err := s.Claim(background, ask(key, token)); err != nil {
						fmt.Println("error:", err)
						os.Exit(1)
					}
					if n.Load()%7 == 0 {
						continue // a run that the crash interrupts
					}
					if _, err := s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour, Status: 200}); err == nil {
						os.Stdout.WriteString("done " + key + "\n")
					}
				}
			}()
		}
		select {}
	case "full":
		fullDisk(s)
	}
}

func startChild(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, childEnv+"_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func TestKilledInTheMiddle(t *testing.T) {
	for round := range 3 {
		path := eventFile(t)
		cmd, lines := startChild(t, "complete", path)
		var acknowledged []string
		for lines.Scan() {
			key, ok := strings.CutPrefix(lines.Text(), "done ")
			if !ok {
				t.Fatal(lines.Text())
			}
			acknowledged = append(acknowledged, key)
			if len(acknowledged) == 200*(round+1) {
				cmd.Process.Kill() // what is in the pipe still counts
			}
		}
		cmd.Wait()
		s := openTest(t, path, options{})
		for _, key := range acknowledged {
			mustClaim(t, s, key, claim.NewToken(), claim.Duplicate)
		}
		stats, err := s.Stats(background)
		if err != nil {
			t.Fatal(err)
		}
		var open int64
		p, err := s.List(background, claim.Query{State: claim.Processing, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Records {
			open++
			if got := mustClaim(t, s, r.Key, claim.NewToken(), claim.Granted); got.Attempts != 2 {
				t.Errorf("%q: attempt %d after the crash", r.Key, got.Attempts)
			}
		}
		t.Logf("%d acknowledged before the kill, on disk: %v", len(acknowledged), stats.Counts[""])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecondProcessIsToldAtOnce(t *testing.T) {
	path := eventFile(t)
	cmd, lines := startChild(t, "hold", path)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatalf("child said %q", lines.Text())
	}
	_, err := open(path, options{})
	if err == nil || !strings.Contains(err.Error(), "is used by another process") || !strings.Contains(err.Error(), path) {
		t.Fatalf("second process: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := openTest(t, path, options{}).Close(); err != nil {
		t.Fatal(err)
	}
}

var errDisk = errors.New("no space left on device")

// failingDisk refuses commits while full is set.
func failingDisk(full *atomic.Bool) options {
	return options{update: func(db *bbolt.DB, fn func(*bbolt.Tx) error) error {
		return db.Update(func(tx *bbolt.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			if full.Load() {
				return errDisk
			}
			return nil
		})
	}}
}

func TestDiskRefusesCommits(t *testing.T) {
	var full atomic.Bool
	path := eventFile(t)
	s := openTest(t, path, failingDisk(&full))
	token, late := claim.NewToken(), claim.NewToken()
	mustClaim(t, s, "before", token, claim.Granted)
	mustComplete(t, s, "before", token)
	mustClaim(t, s, "run", late, claim.Granted)
	if err := s.waitQuiet(); err != nil {
		t.Fatal(err)
	}
	full.Store(true)

	done := claim.Completion{Key: "run", Token: late, TTL: time.Hour, Status: 201}
	for range 3 { // sent again, it is still not durable
		if _, err := s.Complete(background, done); !errors.Is(err, errDisk) {
			t.Fatalf("complete on a full disk: %v", err)
		}
	}
	if _, _, err := s.Claim(background, ask("new", claim.NewToken())); !errors.Is(err, errDisk) {
		t.Fatalf("claim on a full disk: %v", err)
	}
	if err := s.Ping(background); !errors.Is(err, errDisk) {
		t.Fatalf("ping on a full disk: %v", err)
	}
	if _, _, err := s.Claim(background, ask("run", claim.NewToken())); !errors.Is(err, errDisk) {
		t.Fatalf("duplicate of a record that is not on disk: %v", err)
	}
	mustClaim(t, s, "before", claim.NewToken(), claim.Duplicate)

	full.Store(false)
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	for {
		if o, err := s.Complete(ctx, done); err == nil {
			if o != claim.AlreadyWritten {
				t.Errorf("completion sent again after the recovery: %d", o)
			}
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	mustClaim(t, s, "new", claim.NewToken(), claim.Granted)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, path, options{})
	defer s.Close()
	if r := mustClaim(t, s, "run", claim.NewToken(), claim.Duplicate); r.Status != 201 {
		t.Errorf("after the recovery: %+v", r)
	}
	if r := mustClaim(t, s, "before", claim.NewToken(), claim.Duplicate); r.Duplicates != 2 {
		t.Errorf("%d duplicates, want 2", r.Duplicates)
	}
}

// waitQuiet returns when all that was dirty is on disk.
func (s *store) waitQuiet() error {
	s.mu.Lock()
	c := s.next
	busy := len(s.dirty) > 0
	s.mu.Unlock()
	if busy {
		<-c.done
	}
	return s.writable()
}

func TestCloseReportsWhatIsNotWritten(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	s := openTest(t, eventFile(t), failingDisk(&full))
	if _, _, err := s.Claim(background, ask("a", claim.NewToken())); err != nil && !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("close: %v", err)
	}
}

func TestCompleteEndsWithItsContext(t *testing.T) {
	path, hold := eventFile(t), make(chan struct{})
	s := openTest(t, path, options{update: func(db *bbolt.DB, fn func(*bbolt.Tx) error) error {
		<-hold
		return db.Update(fn)
	}})
	token := claim.NewToken()
	mustClaim(t, s, "a", token, claim.Granted) // not waiting for the disk
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if _, err := s.Complete(ctx, claim.Completion{Key: "a", Token: token, TTL: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("complete on a disk that hangs: %v", err)
	}
	if _, err := s.Get(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get of what is not yet durable: %v", err)
	}
	close(hold)
	mustComplete(t, s, "a", token)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// onDisk counts the entries of a bucket.
func (s *store) onDisk(bucket []byte) (n int) {
	s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(_, _ []byte) error {
			n++
			return nil
		})
	})
	return n
}

func TestSweep(t *testing.T) {
	c := newClock()
	s := openTest(t, eventFile(t), options{now: c.time})
	defer s.Close()
	const n = 1200
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				ttl := time.Minute
				if i%10 == 0 {
					ttl = time.Hour
				}
				key, token := fmt.Sprint("evt_", i), claim.NewToken()
				short := ask(key, token)
				short.Lease, short.Keep = time.Second, 2*time.Minute
				if _, _, err := s.Claim(background, short); err != nil {
					t.Error(err)
				}
				if _, err := s.Complete(background, claim.Completion{Key: key, Token: token, TTL: ttl}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r, i := s.onDisk(recordBucket), s.onDisk(expiryBucket); r != n || i != n {
		t.Fatalf("%d records, %d index entries, want %d", r, i, n)
	}
	for _, want := range []struct {
		after         time.Duration
		records, kept int
	}{{time.Minute, 120, 120}, {2 * time.Minute, 120, 120}, {time.Hour, 0, 0}} {
		c.advance(want.after)
		for s.sweep() > 0 {
		}
		if r, i := s.onDisk(recordBucket), s.onDisk(expiryBucket); r != want.records || i != want.kept {
			t.Errorf("%d records, %d index entries, want %d and %d", r, i, want.records, want.kept)
		}
	}
}

func TestSweepBesideARevival(t *testing.T) {
	c := newClock()
	s := openTest(t, eventFile(t), options{now: c.time})
	defer s.Close()
	for i := range 50 {
		key := fmt.Sprint("evt_", i)
		short := ask(key, claim.NewToken())
		short.Lease, short.Keep = time.Second, time.Second
		if _, _, err := s.Claim(background, short); err != nil {
			t.Fatal(err)
		}
	}
	s.waitQuiet()
	c.advance(time.Second)
	var wg sync.WaitGroup
	wg.Go(func() { s.sweep() })
	for i := range 50 {
		wg.Go(func() { mustComplete(t, s, fmt.Sprint("evt_", i), claim.NewToken()) })
	}
	wg.Wait()
	for s.sweep() > 0 {
	}
	if r, i := s.onDisk(recordBucket), s.onDisk(expiryBucket); r != 50 || i != 50 {
		t.Errorf("%d records and %d index entries, want 50 of each", r, i)
	}
	c.advance(time.Hour)
	for s.sweep() > 0 {
	}
	if r, i := s.onDisk(recordBucket), s.onDisk(expiryBucket); r != 0 || i != 0 {
		t.Errorf("%d records and %d index entries are left", r, i)
	}
}

func TestCorruptRecord(t *testing.T) {
	s := openTest(t, eventFile(t), options{})
	defer s.Close()
	err := s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(recordBucket).Put([]byte("bad"), []byte{9, 9, 9})
	})
	if err != nil {
		t.Fatal(err)
	}
	token := claim.NewToken()
	mustClaim(t, s, "good", token, claim.Granted)
	mustComplete(t, s, "good", token)
	if _, _, err := s.Claim(background, ask("bad", token)); !errors.Is(err, errCorrupt) || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("claim of a corrupt record: %v", err)
	}
	if p, err := s.List(background, claim.Query{}); err != nil || len(p.Records) != 1 {
		t.Errorf("list beside a corrupt record: %d records, %v", len(p.Records), err)
	}
	if found, err := s.Forget(background, "bad"); err != nil || !found {
		t.Errorf("forget of a corrupt record: %t, %v", found, err)
	}
	mustClaim(t, s, "bad", token, claim.Granted)
}

func TestHotEntriesAreGivenBack(t *testing.T) {
	s := openTest(t, eventFile(t), options{})
	defer s.Close()
	for i := range 100 {
		key, token := fmt.Sprint("evt_", i), claim.NewToken()
		mustClaim(t, s, key, token, claim.Granted)
		if i%2 == 0 {
			mustComplete(t, s, key, token)
			mustClaim(t, s, key, claim.NewToken(), claim.Duplicate)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := 0
		for i := range s.stripes {
			s.stripes[i].mu.Lock()
			left += len(s.stripes[i].hot)
			s.stripes[i].mu.Unlock()
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d entries stay in memory", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for i := 0; i < 100; i += 2 {
		if r, err := s.Get(background, fmt.Sprint("evt_", i)); err != nil || r.Duplicates != 1 {
			t.Fatalf("%d duplicates, %v", r.Duplicates, err)
		}
	}
}

func TestCloseStopsTheCommitter(t *testing.T) {
	before := runtime.NumGoroutine()
	path := eventFile(t)
	for range 20 {
		if err := openTest(t, path, options{}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines, were %d", after, before)
	}
}

func BenchmarkClaimComplete(b *testing.B) {
	s, err := open(filepath.Join(b.TempDir(), "events.db"), options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key, token := fmt.Sprint("evt_", n.Add(1)), claim.NewToken()
			s.Claim(background, ask(key, token))
			s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour})
		}
	})
}

func BenchmarkDuplicate(b *testing.B) {
	s, err := open(filepath.Join(b.TempDir(), "events.db"), options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	s.Complete(background, claim.Completion{Key: "k", Token: claim.NewToken(), TTL: time.Hour})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Claim(background, ask("k", claim.NewToken()))
		}
	})
}
