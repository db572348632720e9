package webhookdedup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// headerProvider is a provider whose events are named in a header, so that a body may be empty.
const headerProvider = `webhook_dedup {
	store memory
	provider headed {
		id header X-Event
	}
}`

func headed(lines ...string) string {
	return "webhook_dedup headed {\n signature off\n" + strings.Join(lines, "\n") + "\n}\nreverse_proxy {app}"
}

func plainEvent(t *testing.T, id, body string, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://hooks.example.com/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		r.Header.Set("X-Event", id)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// TestTransportNeverResends has an upstream that answers one request on a connection, then reads the next one and drops
// the connection: Go's transport would send that one again if it took it for one that may be repeated.
func TestTransportNeverResends(t *testing.T) {
	for _, body := range []string{"", "a body"} {
		t.Run(fmt.Sprintf("body %q", body), func(t *testing.T) {
			var seen atomic.Int32
			listener, address := listen(t)
			t.Cleanup(func() { listener.Close() })
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						r := bufio.NewReader(c)
						for n := 0; n < 2; n++ {
							request, err := http.ReadRequest(r)
							if err != nil {
								return
							}
							io.Copy(io.Discard, request.Body)
							seen.Add(1)
							if n == 0 {
								io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
							}
						}
					}()
				}
			}()
			s := start(t, nil, headerProvider, strings.ReplaceAll(headed("forward_key Idempotency-Key"), "{app}", address))
			s.want(s.send(plainEvent(t, "1", body, "X-Idempotency-Key", "k")), http.StatusOK, resultProcessed)
			s.want(s.send(plainEvent(t, "2", body, "X-Idempotency-Key", "k")), http.StatusBadGateway, resultFailed)
			if n := seen.Load(); n != 2 {
				t.Errorf("the application was sent %d requests for 2 deliveries", n)
			}
		})
	}
}

// TestAnnouncingCostsNothing has clients announce large bodies and send none.
func TestAnnouncingCostsNothing(t *testing.T) {
	before := buffered.Load()
	reading, done := make(chan struct{}), make(chan struct{})
	r := readerFunc(func([]byte) (int, error) {
		reading <- struct{}{}
		return 0, io.ErrUnexpectedEOF
	})
	go func() {
		defer close(done)
		if b, err := readBody(r, 10<<20, 10<<20, 1<<30); err == nil || b == nil {
			t.Errorf("read: %v", err)
		} else {
			b.release()
		}
	}()
	time.Sleep(10 * time.Millisecond)
	if n := buffered.Load() - before; n > bodyBufferSize {
		t.Errorf("%d bytes are reserved for a body of which nothing has come", n)
	}
	<-reading
	<-done
}

// TestWrappedBodyIsGivenBack has a later handler wrap the body, and nobody read it.
func TestWrappedBodyIsGivenBack(t *testing.T) {
	s := start(t, nil, memoryStore, "route {\n webhook_dedup stripe {\n  secret {env.STRIPE_SECRET}\n }\n request_body {\n  max_size 1MB\n }\n respond 200\n}")
	for i := range 5 {
		s.want(s.deliver(fmt.Sprint("evt_", i)), http.StatusOK, resultProcessed)
	}
	for deadline := time.Now().Add(5 * time.Second); buffered.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are still reserved", buffered.Load())
		}
	}
}

func TestEmptyBodiesAreNotOneEvent(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, headerProvider, headed("on_missing_id hash"))
	s.want(s.send(plainEvent(t, "", "")), http.StatusOK, resultPassed)
	s.want(s.send(plainEvent(t, "", "")), http.StatusOK, resultPassed)
	s.want(s.send(plainEvent(t, "", "a body")), http.StatusOK, resultProcessed)
	a.wantRuns(t, 3)
}

func TestScopeWithoutAValue(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("scope {http.request.header.X-Tenant}"))
	at := func(path string) got {
		r := event(t, "evt_1")
		r.URL.Path = path
		return s.send(r)
	}
	s.want(at("/a"), http.StatusOK, resultProcessed)
	s.want(at("/b"), http.StatusOK, resultProcessed)
	s.logs("scope has no value for this request")
	if err := validate("{\n auto_https off\n}\n:80 {\n" + guarded("scope {env.NOT_SET_ANYWHERE}") + "\n}"); err == nil || !strings.Contains(err.Error(), "scope") {
		t.Errorf("a scope without a value was accepted: %v", err)
	}
}

func TestFailureIsNotReplayed(t *testing.T) {
	a := newApp(t, status(http.StatusConflict))
	s := start(t, a, memoryStore, guarded("acknowledge 2xx 409", "duplicate replay"))
	s.want(s.deliver("evt_1"), http.StatusConflict, resultProcessed)
	s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate)
}

func TestForwardKeyIsTheModules(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, headerProvider, headed("forward_key Idempotency-Key"))
	s.want(s.send(plainEvent(t, "", "x", "Idempotency-Key", "forged", "Idempotency_Key", "forged")), http.StatusOK, resultPassed)
	for name, values := range a.all()[0].header {
		if strings.Contains(fmt.Sprint(values), "forged") {
			t.Errorf("%s is the sender's: %v", name, values)
		}
	}
	for _, name := range []string{"Host", "Content-Length", "Webhook-Dedup-Key", "Stripe-Signature"} {
		if err := validate("{\n auto_https off\n}\n:80 {\n" + guarded("forward_key "+name) + "\n}"); err == nil || !strings.Contains(err.Error(), "forward_key") {
			t.Errorf("forward_key %s was accepted: %v", name, err)
		}
	}
}

func TestRefusedConnectionIsNoUnknownOutcome(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("scope refused"))
	a.Close()
	s.want(s.deliver("evt_1"), http.StatusBadGateway, resultFailed)
	text := s.logs(`"result":"failed"`)
	if strings.Contains(text, "the outcome is unknown") || strings.Contains(text, `"upstream_status"`) {
		t.Errorf("the application was never reached: %s", text)
	}
}

func TestNotAllowedSaysWhatIs(t *testing.T) {
	s := start(t, newApp(t, nil), memoryStore, guarded())
	r, err := http.NewRequest(http.MethodPut, "http://hooks.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := s.send(r); g.header.Get("Allow") != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("Allow: %q", g.header.Get("Allow"))
	}
}

// TestFailedClaimOfAKnownEvent has a claim fail while another delivery's completion becomes pending.
func TestFailedClaimOfAKnownEvent(t *testing.T) {
	const store = "webhook_dedup {\n store faulty known\n}"
	a := newApp(t, nil)
	s := start(t, a, store, guarded("on_store_error pass"))
	waiting, proceed := make(chan struct{}), make(chan struct{})
	var claims atomic.Int32
	failing(t, "known", func(op string) error {
		switch {
		case op == "claim" && claims.Add(1) == 2:
			close(waiting)
			<-proceed
			return errInjected
		case op == "complete", op == "release":
			return errInjected
		}
		return nil
	})
	finish := make(chan struct{})
	a.answer(func(http.ResponseWriter, *http.Request) { <-finish })
	first, second := make(chan got), make(chan got)
	go func() { first <- s.deliver("evt_1") }()
	a.await(t, 1, false)
	go func() { second <- s.deliver("evt_1") }()
	<-waiting
	close(finish)
	s.want(<-first, http.StatusOK, resultProcessed)
	close(proceed)
	s.want(<-second, http.StatusOK, resultDuplicate)
	a.wantRuns(t, 1)
	failing(t, "known", nil)
}

func TestClosedStoreStaysClosed(t *testing.T) {
	handle := &storeHandle{module: &faultyStore{Name: "closed"}, identity: "test:closed", name: "faulty", logger: zap.NewNop()}
	shared := handle.acquire()
	if _, err := shared.open(); err != nil {
		t.Fatal(err)
	}
	handle.release()
	if _, err := shared.open(); !errors.Is(err, errStoreClosed) {
		t.Errorf("a store that nobody refers to was opened again: %v", err)
	}
}

// TestUnknownClaimIsReleasedToTheEnd has another delivery hold the key while the release of an unknown claim is tried: the
// claim may yet be applied after that.
func TestUnknownClaimIsReleasedToTheEnd(t *testing.T) {
	shared := testShared(t, "unknown")
	other := claimed(t, shared, "k", time.Minute)
	ghost := claim.NewToken()
	err := shared.background.add(&settlement{key: "k", timeout: time.Second, until: time.Now().Add(20 * time.Second), logger: zap.NewNop(),
		unknown: true, release: &claim.Release{Key: "k", Token: ghost, Keep: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if _, err := shared.store.Release(context.Background(), claim.Release{Key: "k", Token: other, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	outcome, _, err := shared.store.Claim(context.Background(), claim.Claim{Key: "k", Token: ghost, Lease: time.Minute, Keep: time.Hour})
	if err != nil || outcome != claim.Granted {
		t.Fatalf("the ghost: %v, %v", outcome, err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if record, err := shared.store.Get(context.Background(), "k"); err == nil && record.State == claim.Failed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the ghost's claim still holds the event")
		}
	}
}
