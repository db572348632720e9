package webhookdedup

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
