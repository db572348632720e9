package chaos

import (
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// shortLease is a lease that a test can wait for, with a store timeout that fits it.
const shortLease = "lease 3s\nstore_timeout 500ms"

// Killed in the middle of a run: the event is processed after the lease, and what was processed before is remembered.
func TestKilledInTheMiddleRedis(t *testing.T) {
	t.Parallel()
	st, event := killedInTheMiddle(t, setting{store: "redis", lines: shortLease})
	a := st.provider.Deliver(event) // it waits for the rest of the lease
	want(t, "the retry", a, 200, "processed")
	within(t, "the retry", a.Took, 8*time.Second)
	afterTheCrash(t, st, event)
}

// With the file store nobody else can hold the claim: it is open at once, however long the lease.
func TestKilledInTheMiddleFile(t *testing.T) {
	t.Parallel()
	st, event := killedInTheMiddle(t, setting{store: "file", lines: "lease 30s"})
	a := st.provider.Deliver(event)
	want(t, "the retry", a, 200, "processed")
	within(t, "the retry", a.Took, 5*time.Second)
	afterTheCrash(t, st, event)
}

// killedInTheMiddle returns a stage whose Caddy was killed during the event's first run, and started again.
func killedInTheMiddle(t *testing.T, s setting) (*stage, harness.Event) {
	t.Helper()
	st := newStage(t, s)
	want(t, "before the crash", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "processed")

	event := harness.NewEvent("evt_crash")
	st.ledger.Plan(event.ID, harness.Reply{Delay: time.Minute}, harness.Reply{})
	first := make(chan harness.Answer, 1)
	go func() { first <- st.provider.Deliver(event) }()
	st.ledger.WaitStart(t, event.ID, 1)
	st.Kill()
	if a := <-first; a.Err == nil {
		t.Errorf("the first delivery was answered by a dead process: %s", a)
	}
	st.Restart(t)
	return st, event
}

func afterTheCrash(t *testing.T, st *stage, event harness.Event) {
	t.Helper()
	want(t, "a copy after the crash", st.provider.Deliver(event), 200, "duplicate")
	want(t, "what was processed before", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "duplicate")
	runs := st.ledger.Runs(event.ID)
	if len(runs) != 2 || runs[1].Attempt() != "2" {
		t.Errorf("runs: %s", describe(runs))
	}
}

// SIGTERM in the middle of a run, with the provider still there or gone: the run finishes and is recorded.
func TestTerminatedInTheMiddle(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		for _, http2 := range []bool{false, true} {
			for _, gone := range []bool{false, true} {
				name := protocol(http2)
				if gone {
					name += " provider gone"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					terminatedInTheMiddle(t, store, http2, gone)
				})
			}
		}
	})
}

func terminatedInTheMiddle(t *testing.T, store string, http2, gone bool) {
	t.Helper()
	st := newStage(t, setting{store: store, http2: http2, lines: patient})
	event := harness.NewEvent("evt_term")
	st.ledger.Plan(event.ID, harness.Reply{Delay: 3 * time.Second})
	first := make(chan harness.Answer, 1)
	if gone {
		if err := st.provider.HangUp(event, 700*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // Caddy has noticed
	} else {
		go func() { first <- st.provider.Deliver(event) }()
		st.ledger.WaitStart(t, event.ID, 1)
	}
	st.Terminate(t)
	st.WaitEnd(t, 20*time.Second)
	wantRuns(t, st.ledger, event.ID, 1)
	if !gone {
		want(t, "the delivery", <-first, 200, "processed")
	}
	st.Restart(t)
	want(t, "the retry after the restart", st.provider.Deliver(event), 200, "duplicate")
	wantRuns(t, st.ledger, event.ID, 1)
}
