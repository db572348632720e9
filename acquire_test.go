package webhookdedup

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func TestInFlight(t *testing.T) {
	for _, test := range []struct {
		line       string
		status     int
		retryAfter bool
	}{
		{"in_flight reject", 503, true},
		{"in_flight reject 409", 409, true},
		{"in_flight wait 50ms", 503, true},
		{"in_flight accept", 200, false},
	} {
		t.Run(test.line, func(t *testing.T) {
			finish := make(chan struct{})
			a := newApp(t, func(http.ResponseWriter, *http.Request) { <-finish })
			s := start(t, a, memoryStore, guarded(test.line))
			first := make(chan got)
			go func() { first <- s.deliver("evt_1") }()
			a.await(t, 1, false)
			g := s.deliver("evt_1")
			s.want(g, test.status, resultInFlight)
			if (g.header.Get("Retry-After") != "") != test.retryAfter {
				t.Errorf("Retry-After: %q", g.header.Get("Retry-After"))
			}
			close(finish)
			s.want(<-first, http.StatusOK, resultProcessed)
			a.wantRuns(t, 1)
		})
	}
}

func TestWaiterThatHungUpNeverRuns(t *testing.T) {
	finish := make(chan struct{})
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		<-finish
		w.WriteHeader(http.StatusInternalServerError)
	})
	s := start(t, a, memoryStore, guarded())
	first := make(chan got)
	go func() { first <- s.deliver("evt_1") }()
	a.await(t, 1, false)
	ctx, hangUp := context.WithCancel(context.Background())
	waiting := make(chan got)
	go func() { waiting <- s.do(ctx, s.client(false), event(t, "evt_1")) }()
	time.Sleep(50 * time.Millisecond)
	hangUp()
	<-waiting
	s.logs(`"result":"in_flight"`) // it has left
	close(finish)
	s.want(<-first, http.StatusInternalServerError, resultFailed)
	time.Sleep(50 * time.Millisecond)
	a.wantRuns(t, 1)
}

func TestStoreFails(t *testing.T) {
	const store = "webhook_dedup {\n store faulty claims\n}"
	t.Run("reject", func(t *testing.T) {
		a := newApp(t, nil)
		s := start(t, a, store, guarded())
		failing(t, "claims", func(string) error { return errInjected })
		g := s.deliver("evt_1")
		s.want(g, http.StatusServiceUnavailable, resultStoreError)
		if g.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		failing(t, "claims", nil)
		s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
		a.wantRuns(t, 1)
	})
	t.Run("pass", func(t *testing.T) {
		a := newApp(t, nil)
		s := start(t, a, store, guarded("on_store_error pass", "scope pass"))
		failing(t, "claims", func(string) error { return errInjected })
		s.want(s.deliver("evt_1"), http.StatusOK, resultUnguarded)
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate) // this process knows, and tells the store later
		a.wantRuns(t, 1)
		a.answer(status(http.StatusInternalServerError))
		s.want(s.deliver("evt_2"), http.StatusInternalServerError, resultUnguarded)
		a.answer(nil)
		failing(t, "claims", nil)
		s.logs("completion written after the store had failed")
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
		s.want(s.deliver("evt_2"), http.StatusOK, resultProcessed)
	})
	t.Run("claim applied, answer lost", func(t *testing.T) {
		a := newApp(t, nil)
		s := start(t, a, store, guarded("scope lost"))
		failing(t, "claims", func(op string) error {
			if op == "claim" {
				return errApplied
			}
			return nil
		})
		s.want(s.deliver("evt_1"), http.StatusServiceUnavailable, resultStoreError)
		failing(t, "claims", nil)
		s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed) // not after a lease: the token was released
		a.wantRuns(t, 1)
	})
	t.Run("completion", func(t *testing.T) {
		var attempts atomic.Int32
		a := newApp(t, nil)
		s := start(t, a, store, guarded("scope completion"))
		failing(t, "claims", func(op string) error {
			if op == "complete" && attempts.Add(1) < 5 {
				return errInjected
			}
			return nil
		})
		s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate) // while it is pending, this process knows
		s.logs("completion written after the store had failed")
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
		a.wantRuns(t, 1)
	})
	t.Run("release", func(t *testing.T) {
		var attempts atomic.Int32
		a := newApp(t, status(500))
		s := start(t, a, store, guarded("scope release"))
		failing(t, "claims", func(op string) error {
			if op == "release" && attempts.Add(1) < 4 {
				return errInjected
			}
			return nil
		})
		s.want(s.deliver("evt_1"), 500, resultFailed)
		a.answer(nil)
		s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
	})
}

func TestLease(t *testing.T) {
	t.Run("kept over four leases", func(t *testing.T) {
		a := newApp(t, func(http.ResponseWriter, *http.Request) { time.Sleep(1200 * time.Millisecond) })
		s := start(t, a, memoryStore, guarded("lease 300ms", "store_timeout 50ms"))
		first := make(chan got)
		go func() { first <- s.deliver("evt_1") }()
		a.await(t, 1, false)
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
		s.want(<-first, http.StatusOK, resultProcessed)
		a.wantRuns(t, 1)
	})
	t.Run("lost: the run goes on and another takes over", func(t *testing.T) {
		const store = "webhook_dedup {\n store faulty leases\n}"
		finish := make(chan struct{})
		a := newApp(t, func(http.ResponseWriter, *http.Request) { <-finish })
		s := start(t, a, store, guarded("lease 300ms", "store_timeout 50ms", "timeout 10s"))
		failing(t, "leases", func(op string) error {
			if op == "renew" {
				return claim.ErrLeaseLost
			}
			return nil
		})
		first, second := make(chan got), make(chan got)
		go func() { first <- s.deliver("evt_1") }()
		a.await(t, 1, false)
		go func() { second <- s.deliver("evt_1") }()
		a.await(t, 2, false)
		close(finish)
		s.want(<-first, http.StatusOK, resultProcessed)
		s.want(<-second, http.StatusOK, resultProcessed)
		s.logs("the claim was lost while the application was processing the event")
		s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
	})
}

// TestSlowClaim has claims answered when more than a third of their lease is gone.
func TestSlowClaim(t *testing.T) {
	const store = "webhook_dedup {\n store faulty slow\n}"
	for _, test := range []struct {
		name   string
		line   string
		renew  error
		status int
		result result
		runs   int
	}{
		{"renewed", "", nil, 200, resultProcessed, 1},
		{"lost", "", claim.ErrLeaseLost, 503, resultInFlight, 0},
		{"store fails", "", errInjected, 503, resultStoreError, 0},
		{"store fails, passed on", "on_store_error pass", errInjected, 200, resultUnguarded, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newApp(t, nil)
			s := start(t, a, store, guarded("lease 300ms", "store_timeout 50ms", "scope "+strings.ReplaceAll(test.name, " ", "-"), test.line))
			failing(t, "slow", func(op string) error {
				switch op {
				case "claimed":
					time.Sleep(150 * time.Millisecond)
				case "renew":
					return test.renew
				}
				return nil
			})
			s.want(s.deliver("evt_1"), test.status, test.result)
			a.wantRuns(t, test.runs)
		})
	}
}

func TestRecordLostInTheMiddleOfARun(t *testing.T) {
	finish := make(chan struct{})
	a := newApp(t, func(http.ResponseWriter, *http.Request) { <-finish })
	s := start(t, a, memoryStore, guarded("scope s"))
	first := make(chan got)
	go func() { first <- s.deliver("evt_1") }()
	a.await(t, 1, false)
	if code, answer := ask(t, "DELETE", "/webhook_dedup/events/"+url.PathEscape(":stripe:s:evt_1")+"?force=true"); code != http.StatusOK {
		t.Fatalf("%d %v", code, answer)
	}
	close(finish)
	s.want(<-first, http.StatusOK, resultProcessed)
	s.logs("the store had lost the record while the application was processing the event")
	s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
}
