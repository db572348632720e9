package webhookdedup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

const memoryStore = "webhook_dedup {\n store memory\n}"

// guarded is the usual site: Stripe in front of the application. Lines are added to the directive.
func guarded(lines ...string) string {
	return "webhook_dedup stripe {\n secret {env.STRIPE_SECRET}\n" + strings.Join(lines, "\n") + "\n}\nreverse_proxy {app}"
}

func TestEventIsProcessedOnce(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-App", "yes")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "done")
	})
	s := start(t, a, memoryStore, guarded())

	first := s.deliver("evt_1")
	s.want(first, http.StatusCreated, resultProcessed)
	if first.body != "done" || first.header.Get("X-App") != "yes" {
		t.Errorf("the application's answer was changed: %+v", first)
	}
	second := s.deliver("evt_1")
	s.want(second, http.StatusOK, resultDuplicate)
	if second.body != "" {
		t.Errorf("the duplicate was answered with %q", second.body)
	}
	s.want(s.deliver("evt_2"), http.StatusCreated, resultProcessed)

	runs := a.all()
	if len(runs) != 2 || runs[0].key != "stripe:evt_1" || runs[0].attempt != "1" || runs[1].key != "stripe:evt_2" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestCopiesAtOnceAreOneRun(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			a := newApp(t, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(100 * time.Millisecond) })
			s := start(t, a, memoryStore, guarded())
			const copies = 40
			answers := make([]got, copies)
			var all sync.WaitGroup
			c := s.client(h2)
			for i := range copies {
				r := event(t, "evt_1")
				all.Go(func() { answers[i] = s.do(context.Background(), c, r) })
			}
			all.Wait()
			results := map[string]int{}
			for _, g := range answers {
				if g.status != http.StatusOK {
					t.Errorf("answered %+v", g)
				}
				results[g.result]++
			}
			if results["processed"] != 1 || results["duplicate"] != copies-1 {
				t.Errorf("results: %v", results)
			}
			a.wantRuns(t, 1)
		})
	}
}

func TestRunOutlivesTheProvider(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			finish := make(chan struct{})
			a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-finish:
					io.WriteString(w, strings.Repeat("a long answer ", 10_000))
				case <-r.Context().Done():
					t.Error("the application's request was cancelled")
				}
			})
			s := start(t, a, memoryStore, guarded())
			ctx, hangUp := context.WithCancel(context.Background())
			left := make(chan got)
			go func() { left <- s.do(ctx, s.client(h2), event(t, "evt_1")) }()
			a.await(t, 1, false)
			hangUp()
			if g := <-left; g.err == nil {
				t.Fatalf("the provider did not hang up: %+v", g)
			}
			time.Sleep(50 * time.Millisecond) // time to cancel the run, if it could be
			close(finish)
			s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
			a.await(t, 1, true)
			a.wantRuns(t, 1)
		})
	}
}

func TestFailureIsRetried(t *testing.T) {
	reset := func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			c.Close()
		}
	}
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	}
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		status int
	}{
		{"500", status(500), 500},
		{"503", status(503), 503},
		{"404", status(404), 404},
		{"429", status(429), 429},
		{"302", status(302), 302},
		{"connection reset", reset, 502},
		{"half an answer", half, 502},
	} {
		t.Run(test.name+"/retry", func(t *testing.T) {
			a := newApp(t, test.answer)
			s := start(t, a, memoryStore, guarded())
			s.want(s.deliver("evt_1"), test.status, resultFailed)
			a.answer(nil)
			s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
			s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
			if runs := a.all(); len(runs) != 2 || runs[1].attempt != "2" {
				t.Errorf("runs: %+v", runs)
			}
		})
		t.Run(test.name+"/waiter", func(t *testing.T) {
			var fail atomic.Bool
			fail.Store(true)
			fails := make(chan struct{})
			a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
				if fail.Swap(false) {
					<-fails
					test.answer(w, r)
				}
			})
			s := start(t, a, memoryStore, guarded())
			first, second := make(chan got), make(chan got)
			go func() { first <- s.deliver("evt_1") }()
			a.await(t, 1, false)
			go func() { second <- s.deliver("evt_1") }()
			time.Sleep(30 * time.Millisecond)
			close(fails)
			s.want(<-first, test.status, resultFailed)
			s.want(<-second, http.StatusOK, resultProcessed)
			if runs := a.all(); len(runs) != 2 || runs[1].attempt != "2" {
				t.Errorf("runs: %+v", runs)
			}
		})
	}
}

func TestLaterHandlerMisbehaves(t *testing.T) {
	for _, test := range []struct {
		how    string
		status int
	}{
		{"panic", 500},
		{"half", 502},
		{"plain error", 500},
		{"error with status 200", 500},
	} {
		t.Run(test.how, func(t *testing.T) {
			a := newApp(t, nil)
			block := guarded() + "\nmisbehave \"" + test.how + "\"\nhandle_errors {\n respond \"all is well\" 200\n}"
			s := start(t, a, memoryStore, block)
			s.want(s.deliver("evt_1"), test.status, resultFailed)
			a.wantRuns(t, 0)
			s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
			if runs := a.all(); len(runs) != 1 || runs[0].attempt != "2" {
				t.Errorf("runs: %+v", runs)
			}
		})
	}
}

func TestErrorPageNeverSaysSuccess(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("max_body 1KiB")+"\nhandle_errors {\n respond \"all is well\" 200\n}")
	a.Close() // the proxy answers with an error
	s.want(s.deliver("evt_1"), http.StatusBadGateway, resultFailed)
	forged := event(t, "evt_1")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	s.want(s.send(forged), http.StatusUnauthorized, resultInvalidSignature)
	large := stripeRequest(t, `{"id":"evt_2","x":"`+strings.Repeat("x", 2000)+`"}`, testSecret, time.Now())
	s.want(s.send(large), http.StatusRequestEntityTooLarge, resultTooLarge)
}

func TestNobodyAnswers(t *testing.T) {
	s := start(t, nil, memoryStore, "webhook_dedup stripe {\n secret {env.STRIPE_SECRET}\n}")
	s.want(s.deliver("evt_1"), http.StatusBadGateway, resultFailed)
}

func TestMethods(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded())
	request := func(method, body string, header ...string) *http.Request {
		r, err := http.NewRequest(method, "http://hooks.example.com/stripe", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		s.want(s.send(request(method, "", "Webhook-Dedup-Key", "forged")), http.StatusOK, resultPassed)
	}
	for _, r := range a.all() {
		if r.key != "" {
			t.Errorf("the sender's %s reached the application", keyHeader)
		}
	}
	a.wantRuns(t, 3)
	for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"} {
		s.want(s.send(request(method, "")), http.StatusMethodNotAllowed, resultNotAllowed)
	}
	s.want(s.send(request("GET", "a body")), http.StatusMethodNotAllowed, resultNotAllowed)
	s.want(s.send(request("GET", "", "Connection", "Upgrade", "Upgrade", "websocket")), http.StatusMethodNotAllowed, resultNotAllowed)
	s.want(s.send(request("POST", "", "Connection", "Upgrade", "Upgrade", "websocket")), http.StatusUnauthorized, resultInvalidSignature)
	a.wantRuns(t, 3)

	upgrade := event(t, "evt_1")
	upgrade.Header.Set("Connection", "Upgrade")
	upgrade.Header.Set("Upgrade", "websocket")
	s.want(s.send(upgrade), http.StatusOK, resultProcessed)
	if runs := a.all(); runs[3].header.Get("Upgrade") != "" {
		t.Errorf("the application was asked for an upgrade")
	}
}

func TestOwnHeadersAreRemoved(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("forward_key Idempotency-Key"))
	r := event(t, "evt_1")
	r.Header["Webhook-Dedup-Key"] = []string{"forged"}
	r.Header["webhook_dedup_attempt"] = []string{"77"}
	r.Header["Idempotency-Key"] = []string{"forged"}
	s.want(s.send(r), http.StatusOK, resultProcessed)
	got := a.all()[0].header
	if fmt.Sprint(got["Webhook-Dedup-Key"], got["Webhook-Dedup-Attempt"], got["Idempotency-Key"]) != "[stripe:evt_1] [1] [evt_1]" {
		t.Errorf("headers: %v", got)
	}
	for name := range got {
		if strings.Contains(name, "_") {
			t.Errorf("header %s reached the application", name)
		}
	}
}

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

func TestObserve(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("mode observe", "max_body 1KiB")+"\nhandle_errors {\n respond \"page\" 200\n}")
	observed := func(g got, status int, r result) {
		t.Helper()
		s.want(g, status, "observe; "+r)
	}
	observed(s.deliver("evt_1"), 200, resultProcessed)
	observed(s.deliver("evt_1"), 200, resultDuplicate)
	unsigned := event(t, "evt_2")
	unsigned.Header.Del("Stripe-Signature")
	observed(s.send(unsigned), 200, resultInvalidSignature)
	forged := event(t, "evt_2")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	observed(s.send(forged), 200, resultInvalidSignature)
	large := `{"id":"evt_3","x":"` + strings.Repeat("x", 3000) + `"}`
	observed(s.send(stripeRequest(t, large, testSecret, time.Now())), 200, resultTooLarge)
	chunked := stripeRequest(t, large, testSecret, time.Now())
	chunked.ContentLength = -1
	observed(s.send(chunked), 200, resultTooLarge)
	a.wantRuns(t, 6)
	for _, r := range a.all()[4:] {
		if r.body != large {
			t.Errorf("the application got %d bytes of %d", len(r.body), len(large))
		}
	}
	a.answer(status(500))
	observed(s.deliver("evt_4"), 500, resultFailed)
	a.Close()
	if g := s.deliver("evt_5"); g.status != 200 || g.body != "page" {
		t.Errorf("an error of the proxy did not reach handle_errors in observe mode: %+v", g)
	}
}

func TestReplay(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("Set-Cookie", "session=1")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "<Response/>")
	})
	s := start(t, a, memoryStore, guarded("duplicate replay 1KiB"))
	s.want(s.deliver("evt_1"), http.StatusAccepted, resultProcessed)
	g := s.deliver("evt_1")
	s.want(g, http.StatusAccepted, resultDuplicate)
	if g.body != "<Response/>" || g.header.Get("Content-Type") != "text/xml" || g.header.Get("Set-Cookie") != "" {
		t.Errorf("replayed: %+v", g)
	}
	a.answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 2000)) })
	s.want(s.deliver("evt_2"), http.StatusOK, resultProcessed)
	if g := s.deliver("evt_2"); g.status != 200 || g.body != "" {
		t.Errorf("duplicate of a response that was too large to keep: %+v", g)
	}
	a.answer(status(http.StatusNoContent))
	s.want(s.deliver("evt_3"), http.StatusNoContent, resultProcessed)
	s.want(s.deliver("evt_3"), http.StatusNoContent, resultDuplicate)
	a.wantRuns(t, 3)
}

func TestAnswersAndAcknowledgement(t *testing.T) {
	a := newApp(t, status(http.StatusConflict))
	s := start(t, a, memoryStore, guarded("acknowledge 200 409", "duplicate 202 seen"))
	s.want(s.deliver("evt_1"), http.StatusConflict, resultProcessed)
	if g := s.deliver("evt_1"); g.status != 202 || g.body != "seen" {
		t.Errorf("duplicate: %+v", g)
	}
	a.answer(status(http.StatusAccepted)) // a 2xx that is no acknowledgement here must be retried
	s.want(s.deliver("evt_2"), http.StatusBadGateway, resultFailed)
}

func TestLongAnswerIsStreamed(t *testing.T) {
	const size = 3 << 20
	chunk := strings.Repeat("x", 1<<20)
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		for range size / len(chunk) {
			io.WriteString(w, chunk)
		}
	})
	s := start(t, a, memoryStore, guarded("max_response 64KiB"))
	g := s.deliver("evt_1")
	s.want(g, http.StatusOK, resultProcessed)
	if len(g.body) != size {
		t.Errorf("got %d bytes, want %d", len(g.body), size)
	}
	s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)

	a.answer(func(w http.ResponseWriter, _ *http.Request) { // dies after its beginning has been sent
		io.WriteString(w, chunk)
		panic(http.ErrAbortHandler)
	})
	if g := s.deliver("evt_2"); g.err == nil {
		t.Errorf("an answer that was cut off looks whole: %d, %d bytes", g.status, len(g.body))
	}
	s.want(s.deliver("evt_2"), http.StatusOK, resultDuplicate)

	a.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, chunk)
	})
	g = s.deliver("evt_3")
	s.want(g, http.StatusInternalServerError, resultFailed)
	if len(g.body) != len(chunk) {
		t.Errorf("got %d bytes of the error page", len(g.body))
	}
	a.answer(nil)
	s.want(s.deliver("evt_3"), http.StatusOK, resultProcessed)
}

func TestScopes(t *testing.T) {
	a := newApp(t, nil)
	block := `rewrite * /all
	handle {
		` + guarded() + `
	}`
	s := start(t, a, memoryStore, block)
	at := func(path string) got {
		t.Helper()
		r := event(t, "evt_1")
		r.URL.Path = path
		return s.send(r)
	}
	s.want(at("/a"), http.StatusOK, resultProcessed)
	s.want(at("/b"), http.StatusOK, resultProcessed)
	s.want(at("/a"), http.StatusOK, resultDuplicate)
	s.want(at("//a"), http.StatusOK, resultDuplicate)
	s = start(t, a, memoryStore, guarded("scope one"))
	s.want(at("/a"), http.StatusOK, resultProcessed)
	s.want(at("/b"), http.StatusOK, resultDuplicate)
}

func TestMissingID(t *testing.T) {
	for _, test := range []struct {
		lines         []string
		first, second result
		status, runs  int
	}{
		{nil, resultProcessed, resultDuplicate, 200, 1}, // equal bodies of Stripe are one event
		{[]string{"on_missing_id pass"}, resultPassed, resultPassed, 200, 2},
		{[]string{"on_missing_id reject"}, resultMissingID, resultMissingID, 400, 0},
		{[]string{"id header X-None"}, resultProcessed, resultDuplicate, 200, 1},
	} {
		t.Run(strings.Join(test.lines, ","), func(t *testing.T) {
			a := newApp(t, nil)
			s := start(t, a, memoryStore, guarded(test.lines...))
			body := `{"id":"","type":"x"}`
			s.want(s.send(stripeRequest(t, body, testSecret, time.Now())), test.status, test.first)
			s.want(s.send(stripeRequest(t, body, testSecret, time.Now())), test.status, test.second)
			a.wantRuns(t, test.runs)
		})
	}
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

func TestTimeout(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	s := start(t, a, memoryStore, guarded("timeout 200ms"))
	s.want(s.deliver("evt_1"), http.StatusGatewayTimeout, resultFailed)
	a.answer(nil)
	s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
}

func TestPlaceholdersAndLogs(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, `header X-Seen "{http.webhook_dedup.result}"
	header >X-All "{http.webhook_dedup.provider} {http.webhook_dedup.event_id} {http.webhook_dedup.event_type} {http.webhook_dedup.key} {http.webhook_dedup.result} {http.webhook_dedup.attempt}"
	`+guarded("scope s"))
	g := s.deliver("evt_1")
	if want := "stripe evt_1 charge.succeeded :stripe:s:evt_1 processed 1"; g.header.Get("X-All") != want {
		t.Errorf("placeholders: %q, want %q", g.header.Get("X-All"), want)
	}
	s.deliver("evt_1")
	forged := event(t, "evt_2")
	signature := strings.Repeat("ab", 32)
	forged.Header.Set("Stripe-Signature", "t=1,v1="+signature)
	s.want(s.send(forged), http.StatusUnauthorized, resultInvalidSignature)
	text := s.logs(`"msg":"delivery"`, `"result":"processed"`, `"result":"duplicate"`, `"result":"invalid_signature"`,
		`"webhook_dedup":{"provider":"stripe","result":"duplicate","event_id":"evt_1"`)
	for _, secret := range []string{testSecret, "charge\":"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"msg":"delivery"`) && strings.Contains(line, signature) {
			t.Errorf("a signature is in the line of the delivery: %s", line)
		}
	}
}

func TestSecretsOfARequest(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, `map {header.X-Tenant} {tenant_secret} {
		a secret-of-a
		b secret-of-b
	}
	webhook_dedup stripe {
		secret {tenant_secret}
	}
	reverse_proxy {app}`)
	from := func(tenant, secret string) got {
		r := stripeRequest(t, `{"id":"evt_`+tenant+`"}`, secret, time.Now())
		r.Header.Set("X-Tenant", tenant)
		return s.send(r)
	}
	s.want(from("a", "secret-of-a"), http.StatusOK, resultProcessed)
	s.want(from("b", "secret-of-b"), http.StatusOK, resultProcessed)
	s.want(from("a", "secret-of-b"), http.StatusUnauthorized, resultInvalidSignature)
	s.want(from("c", ""+"x"), http.StatusUnauthorized, resultInvalidSignature)
	s.want(from("c", "{tenant_secret}"), http.StatusUnauthorized, resultInvalidSignature)
	text := s.logs("no usable secret for this request")
	if strings.Contains(text, "secret-of-") {
		t.Error("a secret is in the log")
	}
	a.wantRuns(t, 2)
}

func TestBodyPlaceholderAndPooledBuffers(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded()[:strings.Index(guarded(), "reverse_proxy")]+`reverse_proxy {app} {
		header_up X-Copy {http.request.body}
	}`)
	var all sync.WaitGroup
	for i := range 50 {
		r := event(t, fmt.Sprintf("evt_%d", i))
		r.ContentLength = []int64{r.ContentLength, -1}[i%2]
		all.Go(func() {
			if g := s.send(r); g.status != 200 {
				t.Errorf("answered %+v", g)
			}
		})
	}
	all.Wait()
	for _, r := range a.all() {
		id := strings.TrimPrefix(r.key, "stripe:")
		if !strings.Contains(r.body, `"`+id+`"`) || r.header.Get("X-Copy") != r.body || r.header.Get("Transfer-Encoding") != "" {
			t.Errorf("run of %s got the body %q, a copy %q", id, r.body, r.header.Get("X-Copy"))
		}
	}
	if n := buffered.Load(); n != 0 {
		t.Errorf("%d bytes are still accounted for", n)
	}
}

// TestUpstreamThatAnswersEarly has upstreams answer before they have read large bodies, which leaves transports reading
// when the handlers return.
func TestUpstreamThatAnswersEarly(t *testing.T) {
	early := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		want := r.Header.Get("X-Fill")
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(buf)
			if strings.Trim(string(buf[:n]), want+`"}`) != "" && !strings.Contains(string(buf[:n]), "evt_") {
				t.Errorf("the upstream got bytes of another delivery")
			}
			if err != nil {
				return
			}
		}
	})}
	listener, address := listen(t)
	go early.Serve(listener)
	t.Cleanup(func() { early.Close() })
	s := start(t, nil, memoryStore, strings.ReplaceAll(guarded(), "{app}", address))
	var all sync.WaitGroup
	for i := range 30 {
		fill := string(rune('a' + i%26))
		r := stripeRequest(t, fmt.Sprintf(`{"id":"evt_%d","x":"%s"}`, i, strings.Repeat(fill, 4<<20)), testSecret, time.Now())
		r.Header.Set("X-Fill", fill)
		all.Go(func() { s.send(r) })
	}
	all.Wait()
}

func TestReloadUnderWay(t *testing.T) {
	const store = "webhook_dedup {\n store faulty reload\n}"
	finish := make(chan struct{})
	a := newApp(t, func(http.ResponseWriter, *http.Request) { <-finish })
	s := start(t, a, store, guarded())
	first := make(chan got)
	go func() { first <- s.deliver("evt_1") }()
	a.await(t, 1, false)
	// The new configuration does without the store; the run keeps it open.
	s.load("", "respond ok")
	if refs, _ := stores.References("faulty:reload"); refs != 1 {
		t.Errorf("%d references to the store, want the one of the run", refs)
	}
	close(finish)
	s.want(<-first, http.StatusOK, resultProcessed)
	for i := 0; ; i++ {
		if _, open := stores.References("faulty:reload"); !open {
			break
		}
		if i == 1000 {
			t.Fatal("the store is still referred to")
		}
		time.Sleep(time.Millisecond)
	}
	faults.Lock()
	defer faults.Unlock()
	if faults.open["reload"] != 0 {
		t.Errorf("%d stores left open", faults.open["reload"])
	}
}

func TestFailedReloadLeaksNothing(t *testing.T) {
	const store = "webhook_dedup {\n store faulty failed\n}"
	s := start(t, newApp(t, nil), store, guarded())
	before, _ := stores.References("faulty:failed")
	if err := s.tryLoad(store, guarded("secret {env.NOT_SET_ANYWHERE}")); err == nil {
		t.Fatal("a secret without a value was accepted")
	}
	if after, _ := stores.References("faulty:failed"); after != before || before != 1 {
		t.Errorf("%d references before a failed reload, %d after", before, after)
	}
}

func TestAdaptedOrder(t *testing.T) {
	config, err := adapt(`{
		auto_https off
	}
	http://hooks.example.com {
		webhook_dedup stripe {
			secret {env.STRIPE_SECRET}
		}
		handle /hooks/* {
			reverse_proxy localhost:1
		}
		encode gzip
		respond hello
	}`)
	if err != nil {
		t.Fatal(err)
	}
	text := string(config)
	order := []string{`"handler":"encode"`, `"handler":"webhook_dedup"`, `"handler":"reverse_proxy"`, `"handler":"static_response"`}
	last := -1
	for _, part := range order {
		at := strings.Index(text, part)
		if at < last || at < 0 {
			t.Errorf("%s stands in the wrong place: %s", part, text)
		}
		last = at
	}
}

// TestRandomDeliveries checks the two promises over random failures: whatever the application does, each event is
// processed once, and no delivery is told 2xx before that.
func TestRandomDeliveries(t *testing.T) {
	var mu sync.Mutex
	succeeded := map[string]int{}
	var n atomic.Int32
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%3 != 0 {
			w.WriteHeader([]int{500, 404, 302, 503}[n.Load()%4])
			return
		}
		mu.Lock()
		succeeded[r.Header.Get(keyHeader)]++
		mu.Unlock()
	})
	s := start(t, a, memoryStore, guarded())
	var all sync.WaitGroup
	for i := range 30 {
		id := fmt.Sprintf("evt_%d", i)
		for range 4 {
			all.Go(func() {
				for range 50 {
					g := s.deliver(id)
					if g.status/100 != 2 {
						continue
					}
					mu.Lock()
					if succeeded["stripe:"+id] == 0 {
						t.Errorf("%s was told %d before it was processed", id, g.status)
					}
					mu.Unlock()
					return
				}
				t.Errorf("%s was never processed", id)
			})
		}
	}
	all.Wait()
	for key, times := range succeeded {
		if times != 1 {
			t.Errorf("%s was processed %d times", key, times)
		}
	}
	if len(succeeded) != 30 {
		t.Errorf("%d events were processed, want 30", len(succeeded))
	}
}

func TestJSONConfigHasTheSameFields(t *testing.T) {
	config, err := adapt(`{
		auto_https off
		webhook_dedup {
			environment staging
			max_buffered 1MiB
			store memory
			provider acme {
				signature hmac-sha256 {
					header X-Acme-Signature
					prefix sha256=
					encoding hex
					content "{timestamp}.{body}"
					timestamp header X-Acme-Timestamp
				}
				id header X-Acme-Delivery
				ttl 3d
			}
		}
	}
	http://hooks.example.com {
		webhook_dedup acme {
			secret a b
			secret c
			tolerance off
			public_url https://hooks.example.com/x
			id header X-A json $.a
			id body except b c
			scope s
			ttl 7d
			lease 1m
			timeout 1m30s
			in_flight wait 3s
			on_missing_id reject
			on_store_error pass
			store_timeout 250ms
			acknowledge 2xx 409
			duplicate replay 2KiB
			forward_key Idempotency-Key
			max_body 1MB
			max_response 2MB
			mode observe
			store memory {
				name other
			}
		}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	apps := decode(t, config)["apps"].(map[string]any)
	compact := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const wantApp = `{"defined_at":"Caddyfile:3","environment":"staging","max_buffered":1048576,` +
		`"providers":{"acme":{"id":[[{"from":"header","name":"X-Acme-Delivery"}]],` +
		`"signature":{"algorithm":"hmac-sha256","content":"{timestamp}.{body}","encoding":"hex","header":"X-Acme-Signature",` +
		`"prefix":"sha256=","timestamp":{"from":"header","name":"X-Acme-Timestamp"}},"ttl":259200000000000}},` +
		`"store":{"module":"memory"}}`
	if got := compact(apps["webhook_dedup"]); got != wantApp {
		t.Errorf("app:\n%s\nwant\n%s", got, wantApp)
	}
	const wantHandler = `{"acknowledge":["2xx","409"],"defined_at":"Caddyfile:21",` +
		`"duplicate":{"max_size":2048,"replay":true},"forward_key":"Idempotency-Key","handler":"webhook_dedup",` +
		`"id":[[{"from":"header","name":"X-A"},{"from":"json","name":"$.a"}],[{"except":["b","c"],"from":"body"}]],` +
		`"in_flight":{"action":"wait","wait":3000000000},"lease":60000000000,"max_body":1000000,"max_response":2000000,` +
		`"mode":"observe","on_missing_id":"reject","on_store_error":"pass","provider":"acme",` +
		`"public_url":"https://hooks.example.com/x","scope":"s","secrets":["a","b","c"],` +
		`"store":{"module":"memory","name":"other"},"store_timeout":250000000,"timeout":90000000000,"tolerance":-1,"ttl":604800000000000}`
	handlers := findHandlers(apps)
	if len(handlers) != 1 {
		t.Fatalf("%d handlers", len(handlers))
	}
	if got := compact(handlers[0]); got != wantHandler {
		t.Errorf("handler:\n%s\nwant\n%s", got, wantHandler)
	}
}

// findHandlers returns all webhook_dedup handlers below v.
func findHandlers(v any) (found []any) {
	switch v := v.(type) {
	case map[string]any:
		if v["handler"] == "webhook_dedup" {
			return []any{v}
		}
		var names []string
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			found = append(found, findHandlers(v[name])...)
		}
	case []any:
		for _, element := range v {
			found = append(found, findHandlers(element)...)
		}
	}
	return found
}
