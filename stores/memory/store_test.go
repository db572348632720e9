package memory

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/claim/claimtest"
)

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

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

func TestContract(t *testing.T) {
	c := &fakeClock{now: time.UnixMilli(1_800_000_000_000)}
	claimtest.Run(t, claimtest.Harness{
		Open: func(t *testing.T) claim.Store {
			s := open(c.time)
			t.Cleanup(func() { s.Close() })
			return s
		},
		Advance: c.advance,
	})
}

func TestContractInRealTime(t *testing.T) {
	claimtest.Run(t, claimtest.Harness{Open: func(t *testing.T) claim.Store {
		s, err := new(Store).OpenStore(zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}})
}

func TestSweepGivesMemoryBack(t *testing.T) {
	c := &fakeClock{now: time.UnixMilli(1_800_000_000_000)}
	s := open(c.time)
	defer s.Close()
	for i := range 1000 {
		ttl := time.Minute
		if i%10 == 0 {
			ttl = time.Hour
		}
		if _, err := s.Complete(context.Background(), claim.Completion{Key: fmt.Sprint(i), Token: claim.NewToken(), TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(time.Minute)
	left := 0
	for i := range s.shards {
		s.sweep(&s.shards[i])
		left += len(s.shards[i].entries)
	}
	if left != 100 {
		t.Errorf("%d records are left, want 100", left)
	}
}

func TestCloseStopsTheSweep(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		open(realTime).Close()
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines, were %d", after, before)
	}
}

func TestCaddyfile(t *testing.T) {
	var s Store
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser("memory {\n\tname a\n}")); err != nil || s.Name != "a" {
		t.Errorf("%+v, %v", s, err)
	}
	if s.Identity() == new(Store).Identity() {
		t.Error("stores of different names share one identity")
	}
	for text, want := range map[string]string{
		"memory x":                        "wrong argument count",
		"memory {\n\tnmae a\n}":           `unrecognized subdirective "nmae"; allowed are name`,
		"memory {\n\tname\n}":             "wrong argument count",
		"memory {\n\tname a b\n}":         "wrong argument count",
		"memory {\n\tname a\n\tname b\n}": "already set",
	} {
		if err := new(Store).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
