package chaos

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// failures are the ways in which a first run fails.
var failures = []struct {
	name   string
	reply  harness.Reply
	status int // what the provider is told; 0: anything but a whole 2xx
}{
	{"500", harness.Reply{Status: 500}, 500},
	{"503", harness.Reply{Status: 503}, 503},
	{"404", harness.Reply{Status: 404}, 404},
	{"429", harness.Reply{Status: 429}, 429},
	{"302", harness.Reply{Status: 302, Header: http.Header{"Location": {"/login"}}}, 302},
	{"reset", harness.Reply{Reset: true}, 502},
	{"half", harness.Reply{Half: true}, 0},
}

// What the application did not acknowledge is run by the provider's retry.
func TestFailedRunIsRetried(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		st := newStage(t, setting{store: store, lines: patient})
		for _, f := range failures {
			t.Run(f.name, func(t *testing.T) {
				event := harness.NewEvent("evt_retry_" + f.name)
				st.ledger.Plan(event.ID, f.reply, harness.Reply{})
				wantFailure(t, st.provider.Deliver(event), f.status)
				want(t, "the retry", st.provider.Deliver(event), 200, "processed")
				want(t, "a copy", st.provider.Deliver(event), 200, "duplicate")
				wantSecondAttempt(t, st.ledger, event.ID)
			})
		}
	})
}

// What the application did not acknowledge is run by the delivery that waited for it.
func TestFailedRunIsTakenOverByTheWaiter(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		st := newStage(t, setting{store: store, lines: patient})
		for _, f := range failures {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				event := harness.NewEvent("evt_wait_" + f.name)
				f.reply.Delay = time.Second
				st.ledger.Plan(event.ID, f.reply, harness.Reply{})
				first := make(chan harness.Answer, 1)
				go func() { first <- st.provider.Deliver(event) }()
				st.ledger.WaitStart(t, event.ID, 1)
				want(t, "the waiter", st.provider.Deliver(event), 200, "processed")
				wantFailure(t, <-first, f.status)
				wantSecondAttempt(t, st.ledger, event.ID)
			})
		}
	})
}

func wantFailure(t *testing.T, got harness.Answer, status int) {
	t.Helper()
	switch {
	case status != 0:
		want(t, "the first delivery", got, status, "failed")
	case got.Accepted():
		t.Errorf("the first delivery: told %s although the application's answer was cut", got)
	}
}

func wantSecondAttempt(t *testing.T, l *harness.Ledger, event string) {
	t.Helper()
	wantRuns(t, l, event, 2)
	for i, run := range l.Runs(event) {
		if want := fmt.Sprint(i + 1); run.Attempt() != want {
			t.Errorf("run %d was told attempt %q", i+1, run.Attempt())
		}
		if key := run.Header.Get("Webhook-Dedup-Key"); key != "stripe:"+event {
			t.Errorf("run %d was told key %q", i+1, key)
		}
	}
}

// An application that cannot be reached has acknowledged nothing; an error page that answers 200 changes neither that
// nor a refusal.
func TestErrorPageIsNoSuccess(t *testing.T) {
	t.Parallel()
	const page = "handle_errors {\nrespond \"all is well\" 200\n}"
	nobody := harness.FreeAddress(t)
	down := newStage(t, setting{site: page, app: nobody})
	event := harness.NewEvent("evt_page")
	want(t, "application not reachable", down.provider.Deliver(event), 502, "failed")

	up := newStage(t, setting{store: "redis", site: page, lines: "max_body 1KiB\nlease 3s\nin_flight reject"})
	up.ledger.Plan(event.ID, harness.Reply{Status: 500}, harness.Reply{Reset: true}, harness.Reply{Half: true}, harness.Reply{})
	want(t, "500", up.provider.Deliver(event), 500, "failed")
	want(t, "reset", up.provider.Deliver(event), 502, "failed")
	if a := up.provider.Deliver(event); a.Accepted() {
		t.Errorf("half an answer: told %s", a)
	}

	forged := up.provider.Request(event)
	forged.Header.Set("Stripe-Signature", harness.SignStripe("another", event.Body, time.Now()))
	want(t, "forged", up.provider.Do(forged), 401, "invalid_signature")
	put := up.provider.Request(event)
	put.Method = http.MethodPut
	want(t, "PUT", up.provider.Do(put), 405, "not_allowed")
	large := harness.Event{ID: "evt_large", Body: make([]byte, 4<<10)}
	want(t, "too large", up.provider.Deliver(large), 413, "too_large")

	busy := harness.NewEvent("evt_busy")
	release := make(chan struct{})
	up.ledger.Plan(busy.ID, harness.Reply{Until: release})
	first := make(chan harness.Answer, 1)
	go func() { first <- up.provider.Deliver(busy) }()
	up.ledger.WaitStart(t, busy.ID, 1)
	if a := up.provider.Deliver(busy); a.Accepted() || a.Result != "in_flight" {
		t.Errorf("in flight: told %s", a)
	}
	close(release)
	want(t, "the run itself", <-first, 200, "processed")

	up.redis.Kill()
	want(t, "store gone", up.provider.Deliver(harness.NewEvent("evt_other")), 503, "store_error")
}

// A 2xx that the operator does not count as an acknowledgement is told to the provider as a failure.
func TestUnacknowledgedSuccessIsToldAsFailure(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{lines: "acknowledge 200 409"})
	event := harness.NewEvent("evt_202")
	st.ledger.Plan(event.ID, harness.Reply{Status: 202}, harness.Reply{Status: 409})
	want(t, "202", st.provider.Deliver(event), 502, "failed")
	want(t, "409", st.provider.Deliver(event), 409, "processed")
	want(t, "a copy", st.provider.Deliver(event), 200, "duplicate")
	wantSecondAttempt(t, st.ledger, event.ID)
}
