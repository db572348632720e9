package chaos

import (
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// The classic duplicate: the provider leaves at 1 s, the application finishes at 3 s, the retry comes in between.
func TestProviderHangsUp(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		for _, http2 := range []bool{false, true} {
			t.Run(protocol(http2), func(t *testing.T) {
				t.Parallel()
				st := newStage(t, setting{store: store, http2: http2, lines: patient})
				event := harness.NewEvent("evt_slow")
				st.ledger.Plan(event.ID, harness.Reply{Delay: 3 * time.Second})
				if err := st.provider.HangUp(event, time.Second); err != nil {
					t.Fatal(err)
				}
				want(t, "the retry while the application works", st.provider.Deliver(event), 200, "duplicate")
				want(t, "a later retry", st.provider.Deliver(event), 200, "duplicate")
				wantRuns(t, st.ledger, event.ID, 1)
			})
		}
	})
}

// A provider that has hung up while it waited for another delivery never becomes a run of its own.
func TestWaiterThatHungUpNeverRuns(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		st := newStage(t, setting{store: store, lines: patient})
		event := harness.NewEvent("evt_waiter")
		st.ledger.Plan(event.ID, harness.Reply{Delay: 2 * time.Second, Status: 500}, harness.Reply{})
		first := make(chan harness.Answer, 1)
		go func() { first <- st.provider.Deliver(event) }()
		st.ledger.WaitStart(t, event.ID, 1)
		if err := st.provider.HangUp(event, 500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		want(t, "the first delivery", <-first, 500, "failed")
		time.Sleep(time.Second) // a waiter that claimed would have run by now
		wantRuns(t, st.ledger, event.ID, 1)
		want(t, "the retry", st.provider.Deliver(event), 200, "processed")
	})
}

func protocol(http2 bool) string {
	if http2 {
		return "http2"
	}
	return "http1"
}
