package chaos

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// The configuration is replaced every 0.3 s under load: nothing is lost, nothing runs twice, caddy validate of the same
// configuration passes beside the running Caddy, and neither connections nor goroutines grow.
func TestReloadsUnderLoad(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		// Without connections kept to the application: a run that outlives its configuration leaves one behind for two
		// minutes, in any Caddy, and this test counts what the module leaves behind.
		st := newStage(t, setting{store: store, lines: patient, proxy: "transport http {\nkeepalive off\n}"})
		st.ledger.Always(harness.Reply{Delay: 100 * time.Millisecond})
		reload := func(n int) {
			config := st.config
			config.Mark = fmt.Sprint("configuration ", n)
			if err := st.Load(config); err != nil {
				t.Errorf("reload %d: %v", n, err)
			}
		}

		// Warm up, so that what is counted before has all that a Caddy under load has.
		var warm sync.WaitGroup
		for i := range 6 {
			warm.Go(func() { deliverTwice(t, st.provider, harness.NewEvent(fmt.Sprint("evt_warm_", i))) })
		}
		warm.Wait()
		reload(0)
		goroutines, connections := st.Goroutines(t), st.clients(t)

		const reloads = 24
		var stop atomic.Bool
		var load sync.WaitGroup
		var events atomic.Int64
		for range 6 {
			load.Go(func() {
				for !stop.Load() {
					event := harness.NewEvent(fmt.Sprintf("evt_reload_%d", events.Add(1)))
					deliverTwice(t, st.provider, event)
				}
			})
		}
		for n := 1; n <= reloads; n++ {
			time.Sleep(300 * time.Millisecond)
			reload(n)
			if n%8 == 0 {
				if out, err := st.Validate(t, st.config); err != nil {
					t.Errorf("caddy validate beside the running Caddy: %v\n%s", err, out)
				}
			}
		}
		stop.Store(true)
		load.Wait()

		counts := st.ledger.Counts()
		if n := 6 + int(events.Load()); len(counts) != n || n < 20 {
			t.Errorf("%d of %d events were run", len(counts), n)
		}
		for id, n := range counts {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
		}

		// Idle connections may still be closing; what leaked stays.
		harness.Eventually(t, 20*time.Second, "goroutines are as few as before the reloads", func() bool {
			return st.Goroutines(t) <= goroutines+reloads/2
		})
		harness.Eventually(t, 20*time.Second, "connections at Redis are as few as before the reloads", func() bool {
			return st.clients(t) <= connections+reloads/2
		})
	})
}

// deliverTwice delivers two copies at once, each until it is accepted, as a provider does that reconnects after an error.
func deliverTwice(t *testing.T, provider *harness.Stripe, event harness.Event) {
	var copies sync.WaitGroup
	for range 2 {
		copies.Go(func() {
			answers := provider.UntilAccepted(event, 50*time.Millisecond, 20*time.Second)
			for _, a := range answers {
				if a.Err == nil && !a.Accepted() {
					t.Errorf("%s: told %s during reloads", event.ID, a)
				}
			}
			if last := answers[len(answers)-1]; !last.Accepted() {
				t.Errorf("%s: lost, %d deliveries, the last was told %s", event.ID, len(answers), last)
			}
		})
	}
	copies.Wait()
}

// clients is the number of connections at the store, none with the file store.
func (st *stage) clients(t *testing.T) int {
	t.Helper()
	if st.redis == nil {
		return 0
	}
	return st.redis.Clients(t)
}

// A run that began under one configuration ends under the next one, and is recorded.
func TestRunOutlivesItsConfiguration(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		st := newStage(t, setting{store: store, lines: patient})
		event := harness.NewEvent("evt_outlive")
		st.ledger.Plan(event.ID, harness.Reply{Delay: 2 * time.Second})
		first := make(chan harness.Answer, 1)
		go func() { first <- st.provider.Deliver(event) }()
		st.ledger.WaitStart(t, event.ID, 1)
		next := st.config
		next.Mark = "next"
		if err := st.Load(next); err != nil {
			t.Fatal(err)
		}
		want(t, "a copy under the next configuration", st.provider.Deliver(event), 200, "duplicate")
		want(t, "the delivery", <-first, 200, "processed")
		wantRuns(t, st.ledger, event.ID, 1)
	})
}

// A second process on the same file is told so; it neither hangs nor disturbs the first.
func TestFileStoreBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	event := harness.NewEvent("evt_file")
	want(t, "the first process", st.provider.Deliver(event), 200, "processed")
	second := harness.NewCaddy(t)
	out, err := second.TryRun(t, st.config, 30*time.Second)
	if err == nil {
		// It may start and refuse deliveries instead; it must not run them.
		t.Errorf("a second process on the same file started:\n%s", out)
	}
	want(t, "the first process afterwards", st.provider.Deliver(event), 200, "duplicate")
}
