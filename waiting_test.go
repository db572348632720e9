package webhookdedup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// testShared returns an open store outside of any Caddy.
func testShared(t *testing.T, name string) *sharedStore {
	t.Helper()
	handle := &storeHandle{module: &faultyStore{Name: name}, identity: "test:" + name, name: "faulty", logger: zap.NewNop()}
	shared := handle.acquire()
	t.Cleanup(func() {
		handle.release()
		unreferenced(t, handle.identity)
	})
	if _, err := shared.open(); err != nil {
		t.Fatal(err)
	}
	return shared
}

// unreferenced waits until nothing refers to a store any more.
func unreferenced(t *testing.T, identity string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, open := stores.References(identity); !open {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the store is still referred to")
		}
	}
}

func claimed(t *testing.T, shared *sharedStore, key string, lease time.Duration) claim.Token {
	t.Helper()
	token := claim.NewToken()
	outcome, _, err := shared.store.Claim(context.Background(), claim.Claim{Key: key, Token: token, Lease: lease, Keep: time.Hour})
	if err != nil || outcome != claim.Granted {
		t.Fatalf("claim: %v, %v", outcome, err)
	}
	return token
}

func TestWaitersAreWoken(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*sharedStore, claim.Token) error
	}{
		{"processed elsewhere", func(s *sharedStore, token claim.Token) error {
			_, err := s.store.Complete(context.Background(), claim.Completion{Key: "k", Token: token, TTL: time.Hour})
			return err
		}},
		{"released elsewhere", func(s *sharedStore, token claim.Token) error {
			_, err := s.store.Release(context.Background(), claim.Release{Key: "k", Token: token, Keep: time.Hour})
			return err
		}},
		{"forgotten", func(s *sharedStore, _ claim.Token) error {
			_, err := s.store.Forget(context.Background(), "k")
			return err
		}},
		{"signalled in this process", func(s *sharedStore, _ claim.Token) error { s.waiting.wake("k"); return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			shared := testShared(t, "waiters")
			token := claimed(t, shared, "k", time.Minute)
			var all sync.WaitGroup
			var woken atomic.Int32
			for range 50 {
				all.Go(func() {
					if shared.waiting.wait(context.Background(), "k", time.Minute, time.Second) {
						woken.Add(1)
					}
				})
			}
			for waiting := 0; waiting < 50; time.Sleep(time.Millisecond) {
				shared.waiting.mu.Lock()
				waiting = shared.waiting.waiting
				shared.waiting.mu.Unlock()
			}
			if err := test.end(shared, token); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			if woken.Load() != 50 || len(shared.waiting.watches) != 0 || shared.waiting.waiting != 0 {
				t.Errorf("%d woken, %d watches and %d waiting left", woken.Load(), len(shared.waiting.watches), shared.waiting.waiting)
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	shared := testShared(t, "ends")
	claimed(t, shared, "k", time.Minute)
	if !shared.waiting.wait(context.Background(), "k", time.Millisecond, time.Second) {
		t.Error("no room")
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	if !shared.waiting.wait(gone, "k", time.Minute, time.Second) {
		t.Error("no room")
	}
}

func TestWaitingIsBounded(t *testing.T) {
	shared := testShared(t, "bounded")
	claimed(t, shared, "k", time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	for range maxWaitingPerKey {
		if _, ok := shared.waiting.enter("k", time.Second); !ok {
			t.Fatal("no room below the bound")
		}
	}
	if shared.waiting.wait(ctx, "k", time.Minute, time.Second) {
		t.Error("room above the bound of one key")
	}
	for i := range maxWaiting - maxWaitingPerKey {
		if _, ok := shared.waiting.enter(string(rune('a'+i/maxWaitingPerKey)), time.Second); !ok {
			t.Fatal("no room below the bound")
		}
	}
	if shared.waiting.wait(ctx, "other", time.Minute, time.Second) {
		t.Error("room above the bound of all keys")
	}
	stop()
	for range maxWaitingPerKey {
		shared.waiting.leave("k")
	}
	for i := range maxWaiting - maxWaitingPerKey {
		shared.waiting.leave(string(rune('a' + i/maxWaitingPerKey)))
	}
	if len(shared.waiting.watches) != 0 {
		t.Errorf("%d watches left", len(shared.waiting.watches))
	}
}

// TestWaitersOfAFailingStore checks that a store which fails neither wakes waiters nor keeps them for ever.
func TestWaitersOfAFailingStore(t *testing.T) {
	shared := testShared(t, "dark")
	token := claimed(t, shared, "k", time.Minute)
	failing(t, "dark", func(string) error { return errInjected })
	done := make(chan bool)
	go func() { done <- shared.waiting.wait(context.Background(), "k", time.Minute, time.Second) }()
	select {
	case <-done:
		t.Fatal("woken by a failing store")
	case <-time.After(100 * time.Millisecond):
	}
	failing(t, "dark", nil)
	if _, err := shared.store.Release(context.Background(), claim.Release{Key: "k", Token: token, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestBackground(t *testing.T) {
	settle := func(shared *sharedStore, p *settlement) {
		t.Helper()
		p.timeout, p.logger = time.Second, zap.NewNop()
		if p.until.IsZero() {
			p.until = time.Now().Add(time.Minute)
		}
		if err := shared.background.add(p); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("completion", func(t *testing.T) {
		shared := testShared(t, "completion")
		token := claimed(t, shared, "k", time.Minute)
		var failures atomic.Int32
		failing(t, "completion", func(op string) error {
			if op == "complete" && failures.Add(1) < 4 {
				return errInjected
			}
			return nil
		})
		settle(shared, &settlement{key: "k", completion: &claim.Completion{Key: "k", Token: token, TTL: time.Hour, Status: 201}})
		if record, pending := shared.background.processed("k"); !pending || record.Status != 201 {
			t.Errorf("the event does not count as processed: %+v", record)
		}
		pendingWork.wait(10 * time.Second)
		record, err := shared.store.Get(context.Background(), "k")
		if err != nil || record.State != claim.Processed {
			t.Errorf("record: %+v, %v", record, err)
		}
		if _, pending := shared.background.processed("k"); pending {
			t.Error("still pending")
		}
	})
	t.Run("lost while the store failed", func(t *testing.T) {
		shared := testShared(t, "lost")
		token := claimed(t, shared, "k", time.Minute)
		shared.store.Forget(context.Background(), "k")
		claimed(t, shared, "k", time.Minute)
		settle(shared, &settlement{key: "k", completion: &claim.Completion{Key: "k", Token: token, TTL: time.Hour}})
		pendingWork.wait(10 * time.Second)
		if record, _ := shared.store.Get(context.Background(), "k"); record.State != claim.Processing {
			t.Errorf("another delivery's claim was taken away: %+v", record)
		}
	})
	t.Run("worthless", func(t *testing.T) {
		shared := testShared(t, "worthless")
		failing(t, "worthless", func(string) error { return errInjected })
		settle(shared, &settlement{key: "k", until: time.Now().Add(200 * time.Millisecond),
			completion: &claim.Completion{Key: "k", Token: claim.NewToken(), TTL: time.Hour}})
		if !pendingWork.wait(10 * time.Second) {
			t.Error("worked on for ever")
		}
		if _, pending := shared.background.processed("k"); pending {
			t.Error("a completion that was given up counts as processed")
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		shared := testShared(t, "forgotten")
		failing(t, "forgotten", func(string) error { return errInjected })
		settle(shared, &settlement{key: "k", completion: &claim.Completion{Key: "k", Token: claim.NewToken(), TTL: time.Hour}})
		shared.background.forget("k")
		if _, pending := shared.background.processed("k"); pending {
			t.Error("still pending")
		}
		failing(t, "forgotten", nil)
		pendingWork.wait(10 * time.Second)
	})
	t.Run("many", func(t *testing.T) {
		shared := testShared(t, "many")
		failing(t, "many", func(string) error { return errInjected })
		for range maxPending {
			settle(shared, &settlement{key: "k", release: &claim.Release{Key: "k", Token: claim.NewToken(), Keep: time.Hour}})
		}
		over := &settlement{key: "k", release: &claim.Release{Key: "k", Token: claim.NewToken(), Keep: time.Hour}}
		// The batch that is being worked on is not in the queue.
		var err error
		for range settleAtOnce + 1 {
			over.timeout, over.logger, over.until = time.Second, zap.NewNop(), time.Now().Add(time.Minute)
			err = errors.Join(err, shared.background.add(over))
		}
		if !errors.Is(err, errPendingOverflow) {
			t.Errorf("the queue is not bounded: %v", err)
		}
		failing(t, "many", nil) // and the queue is worked off before the store is given up
	})
}
