package chaos

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// 300 events, five copies of each at once: every event runs once, every delivery is told 200.
func TestConcurrentCopiesRunOnce(t *testing.T) {
	// Not in parallel with other tests: these take all that a small machine has.
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			st := newStage(t, setting{store: store, lines: patient})
			st.ledger.Always(harness.Reply{Delay: 20 * time.Millisecond})
			storm(t, st.ledger, 300, 5, st.provider)
		})
	}
}

// 300 events, six copies of each at once over two Caddy processes that share a Redis.
func TestConcurrentCopiesRunOnceOverTwoProcesses(t *testing.T) {
	st := newStage(t, setting{store: "redis", lines: patient})
	other := newStage(t, setting{store: "redis", redis: st.redis.URL(), app: st.ledger.Address, lines: patient})
	st.ledger.Always(harness.Reply{Delay: 20 * time.Millisecond})
	storm(t, st.ledger, 300, 6, st.provider, other.provider)
}

// storm delivers copies of events at once, over the providers in turn, twenty events at a time.
func storm(t *testing.T, ledger *harness.Ledger, events, copies int, providers ...*harness.Stripe) {
	t.Helper()
	var mu sync.Mutex
	results := map[string]int{}
	deliver := func(id string) {
		event := harness.NewEvent(id)
		processed := 0
		var wg sync.WaitGroup
		for i := range copies {
			wg.Go(func() {
				a := providers[i%len(providers)].Deliver(event)
				mu.Lock()
				defer mu.Unlock()
				if a.Err != nil || a.Status != 200 {
					t.Errorf("%s, copy %d: told %s", id, i, a)
				}
				results[a.Result]++
				if a.Result == "processed" {
					processed++
				}
			})
		}
		wg.Wait()
		if processed != 1 {
			t.Errorf("%s: %d deliveries are said to have processed it", id, processed)
		}
	}

	ids := make(chan string)
	var workers sync.WaitGroup
	for range 20 {
		workers.Go(func() {
			for id := range ids {
				deliver(id)
			}
		})
	}
	for i := range events {
		ids <- fmt.Sprintf("evt_storm_%03d", i)
	}
	close(ids)
	workers.Wait()

	counts := ledger.Counts()
	if len(counts) != events || ledger.Total() != events {
		t.Errorf("%d events were run in %d runs, want %d in as many", len(counts), ledger.Total(), events)
	}
	for id, n := range counts {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if results["processed"] != events || results["duplicate"] != events*(copies-1) {
		t.Errorf("results: %v", results)
	}
}
