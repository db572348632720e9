package chaos

import (
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// A run of more than four leases keeps its claim: nobody else gets it, and its outcome is recorded.
func TestLongRunKeepsItsClaim(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		st := newStage(t, setting{store: store, lines: shortLease + "\nin_flight wait 2s"})
		event := harness.NewEvent("evt_long")
		st.ledger.Plan(event.ID, harness.Reply{Delay: 13 * time.Second})
		first := make(chan harness.Answer, 1)
		go func() { first <- st.provider.Deliver(event) }()
		st.ledger.WaitStart(t, event.ID, 1)
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			a := st.provider.Deliver(event)
			want(t, "a copy during the run", a, 503, "in_flight")
			if a.Header.Get("Retry-After") == "" {
				t.Error("the copy is not told when to come back")
			}
		}
		want(t, "the delivery", <-first, 200, "processed")
		want(t, "a copy after the run", st.provider.Deliver(event), 200, "duplicate")
		wantRuns(t, st.ledger, event.ID, 1)
	})
}

// A process that was frozen past its lease has lost it: another takes over, and what the first one says of the event when
// it thaws does not disturb the other's claim.
func TestFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis", lines: shortLease})
	other := newStage(t, setting{store: "redis", redis: st.redis.URL(), app: st.ledger.Address, lines: shortLease})
	event := harness.NewEvent("evt_frozen")
	st.ledger.Plan(event.ID, harness.Reply{Status: 500, Delay: 2 * time.Second}, harness.Reply{Delay: 4 * time.Second})

	first := make(chan harness.Answer, 1)
	go func() { first <- st.provider.Deliver(event) }()
	st.ledger.WaitStart(t, event.ID, 1)
	st.Freeze(t)
	second := make(chan harness.Answer, 1)
	go func() { second <- other.provider.Deliver(event) }()
	st.ledger.WaitStart(t, event.ID, 2)
	st.Thaw(t)

	// The first run failed: its release must not free what the second run holds.
	if a := <-first; a.Accepted() {
		t.Errorf("the failed run was told as a success: %s", a)
	}
	want(t, "a copy during the second run", st.provider.Deliver(event), 200, "duplicate")
	want(t, "the delivery that took over", <-second, 200, "processed")
	wantRuns(t, st.ledger, event.ID, 2)
}
