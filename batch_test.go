package webhookdedup

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// sendGrid signs batches with a key of its own.
type sendGrid struct {
	public, private string
}

func newSendGrid(t *testing.T) sendGrid {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SENDGRID_KEY", base64.StdEncoding.EncodeToString(public))
	return sendGrid{base64.StdEncoding.EncodeToString(public), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
}

func (g sendGrid) request(t *testing.T, body string) *http.Request {
	t.Helper()
	return signed(t, "sendgrid", &provider.Delivery{
		Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body),
	}, g.private, time.Now())
}

// events is a batch as SendGrid writes it, down to the line break behind it.
func events(ids ...string) string {
	var b strings.Builder
	b.WriteString("[")
	for i, id := range ids {
		if i > 0 {
			b.WriteString(",\r\n")
		}
		fmt.Fprintf(&b, `{"email":"a@example.com","event":"open","sg_event_id":%q, "n" : [1, {"x":"]"}]}`, id)
	}
	return b.String() + "]\r\n"
}

func ids(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("id_%04d", i))
	}
	return out
}

// seenBy returns the IDs in the body of a run.
func seenBy(t *testing.T, body string) (out []string) {
	t.Helper()
	var elements []struct {
		ID string `json:"sg_event_id"`
	}
	if err := json.Unmarshal([]byte(body), &elements); err != nil {
		t.Fatalf("the application got no array: %v", err)
	}
	for _, e := range elements {
		out = append(out, e.ID)
	}
	return out
}

func batched(lines ...string) string {
	return "webhook_dedup sendgrid {\n secret {env.SENDGRID_KEY}\n" + strings.Join(lines, "\n") + "\n}\nreverse_proxy {app}"
}

func TestBatchWhole(t *testing.T) {
	g := newSendGrid(t)
	a := newApp(t, nil)
	s := start(t, a, memoryStore, batched())
	first := events(ids(0, 1000)...)
	s.want(s.send(g.request(t, first)), http.StatusOK, resultProcessed)
	s.want(s.send(g.request(t, first)), http.StatusOK, resultDuplicate)
	regrouped := events(append(ids(500, 1000), ids(2000, 2010)...)...)
	s.want(s.send(g.request(t, regrouped)), http.StatusOK, resultProcessed)
	s.want(s.send(g.request(t, regrouped)), http.StatusOK, resultDuplicate)
	runs := a.all()
	if len(runs) != 2 || runs[0].body != first || runs[1].body != regrouped {
		t.Errorf("%d runs, or their bodies were changed", len(runs))
	}
}

func TestBatchFilter(t *testing.T) {
	g := newSendGrid(t)
	a := newApp(t, nil)
	s := start(t, a, memoryStore, batched("batch filter"))
	first := events(ids(0, 1000)...)
	s.want(s.send(g.request(t, first)), http.StatusOK, resultProcessed)
	mixed := ids(0, 1000)
	for i, id := range ids(2000, 2010) {
		mixed = slices.Insert(mixed, i*100, id)
	}
	s.want(s.send(g.request(t, events(mixed...))), http.StatusOK, resultProcessed)
	s.want(s.send(g.request(t, events(mixed...))), http.StatusOK, resultDuplicate)
	runs := a.all()
	if len(runs) != 2 || runs[0].body != first {
		t.Fatalf("%d runs, or a batch that was all new was changed", len(runs))
	}
	if got := seenBy(t, runs[1].body); !slices.Equal(got, ids(2000, 2010)) {
		t.Errorf("the application saw %v", got)
	}
	if raw := `{"email":"a@example.com","event":"open","sg_event_id":"id_2003", "n" : [1, {"x":"]"}]}`; !strings.Contains(runs[1].body, raw) ||
		runs[1].header.Get("Content-Length") != fmt.Sprint(len(runs[1].body)) {
		t.Errorf("the elements' bytes were changed: %s", runs[1].body)
	}
}

func TestBatchFails(t *testing.T) {
	for _, mode := range []string{"whole", "filter"} {
		t.Run(mode, func(t *testing.T) {
			g := newSendGrid(t)
			a := newApp(t, status(http.StatusInternalServerError))
			s := start(t, a, memoryStore, batched("batch "+mode))
			s.want(s.send(g.request(t, events(ids(0, 5)...))), http.StatusInternalServerError, resultFailed)
			a.answer(nil)
			s.want(s.send(g.request(t, events(ids(2, 7)...))), http.StatusOK, resultProcessed)
			s.want(s.send(g.request(t, events(ids(0, 5)...))), http.StatusOK, resultProcessed)
			s.want(s.send(g.request(t, events(ids(0, 7)...))), http.StatusOK, resultDuplicate)
			want := ids(0, 2)
			if mode == "whole" {
				want = ids(0, 5)
			}
			if got := seenBy(t, a.all()[2].body); !slices.Equal(got, want) {
				t.Errorf("the application saw %v, want %v", got, want)
			}
		})
	}
}

// TestBatchesCross has batches with common events under way at once, in opposite orders: none may block another, and
// under filter each event goes to the application once.
func TestBatchesCross(t *testing.T) {
	for _, mode := range []string{"whole", "filter"} {
		t.Run(mode, func(t *testing.T) {
			g := newSendGrid(t)
			var mu sync.Mutex
			processed := map[string]int{}
			a := newApp(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) })
			s := start(t, a, memoryStore, batched("batch "+mode, "in_flight wait 20s"))
			var all sync.WaitGroup
			for i := range 12 {
				batch := ids(i%4*5, i%4*5+20)
				if i%2 == 1 {
					slices.Reverse(batch)
				}
				r := g.request(t, events(batch...))
				all.Go(func() {
					if g := s.send(r); g.status != http.StatusOK {
						t.Errorf("answered %+v", g)
					}
				})
			}
			all.Wait()
			for _, r := range a.all() {
				mu.Lock()
				for _, id := range seenBy(t, r.body) {
					processed[id]++
				}
				mu.Unlock()
			}
			if len(processed) != 35 {
				t.Errorf("%d events reached the application, want 35", len(processed))
			}
			for id, n := range processed {
				if mode == "filter" && n != 1 {
					t.Errorf("%s reached the application %d times", id, n)
				}
			}
		})
	}
}

// TestBatchBusyAndGivenBack has one delivery hold an event of another's batch and then fail.
func TestBatchBusyAndGivenBack(t *testing.T) {
	g := newSendGrid(t)
	release := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() {
		select {
		case <-release:
		default:
			close(release)
		}
	}))
	first := true
	var mu sync.Mutex
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		mine := first
		first = false
		mu.Unlock()
		if mine {
			<-release
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	s := start(t, a, memoryStore, batched("batch filter", "in_flight wait 20s"))
	one, two := make(chan got), make(chan got)
	request := g.request(t, events("a"))
	go func() { one <- s.send(request) }()
	a.await(t, 1, false)
	both := g.request(t, events("a", "b"))
	go func() { two <- s.send(both) }()
	a.await(t, 1, true) // b goes at once, without waiting for a
	close(release)
	s.want(<-one, http.StatusInternalServerError, resultFailed)
	s.want(<-two, http.StatusOK, resultProcessed)
	runs := a.all()
	if len(runs) != 3 || fmt.Sprint(seenBy(t, runs[1].body), seenBy(t, runs[2].body)) != "[b] [a]" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestBatchStoreFails(t *testing.T) {
	g := newSendGrid(t)
	a := newApp(t, nil)
	s := start(t, a, "webhook_dedup {\n store faulty batch\n}", batched())
	n := 0
	failing(t, "batch", func(op string) error {
		faults.Lock()
		defer faults.Unlock()
		if op == "claim" {
			if n++; n == 3 {
				return errInjected
			}
		}
		return nil
	})
	s.want(s.send(g.request(t, events(ids(0, 10)...))), http.StatusServiceUnavailable, resultStoreError)
	a.wantRuns(t, 0)
	failing(t, "batch", nil)
	s.want(s.send(g.request(t, events(ids(0, 10)...))), http.StatusOK, resultProcessed)
	s.want(s.send(g.request(t, events(ids(0, 10)...))), http.StatusOK, resultDuplicate)
}

func TestOddBatches(t *testing.T) {
	t.Setenv("GOCARDLESS_SECRET", "gocardless-secret")
	large := `{"events":[` + strings.Repeat(`{"id":"x"},`, provider.MaxElements) + `{"id":"x"}]}`
	for _, test := range []struct {
		name, lines, body string
		status            int
		first, second     result
		runs              int
	}{
		{"empty", "", `{"events":[]}`, 200, resultPassed, resultPassed, 2},
		{"no array", "", `{"events":{"id":"x"}}`, 200, resultPassed, resultPassed, 2},
		{"no JSON", "", "hello", 200, resultPassed, resultPassed, 2},
		{"no IDs", "", `{"events":[{"action":"a"}]}`, 200, resultPassed, resultPassed, 2},
		{"no IDs, rejected", "on_missing_id reject", `{"events":[{"action":"a"}]}`, 400, resultMissingID, resultMissingID, 0},
		{"no IDs, hashed", "on_missing_id hash", `{"events":[{"action":"a"},{"action":"a"}]}`, 200, resultProcessed, resultDuplicate, 1},
		{"one without an ID", "", `{"events":[{"id":"x"},{"action":"a"}]}`, 200, resultProcessed, resultPassed, 2},
		{"one without an ID, filtered", "batch filter", `{"events":[{"id":"x"},{"action":"a"}]}`, 200, resultProcessed, resultProcessed, 2},
		{"the same event twice", "batch filter", `{"events":[{"id":"x"},{"id":"x"}]}`, 200, resultProcessed, resultDuplicate, 1},
		{"too many", "max_body 20MB", large, 413, resultTooLarge, resultTooLarge, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newApp(t, nil)
			s := start(t, a, memoryStore, "webhook_dedup gocardless {\n secret {env.GOCARDLESS_SECRET}\n"+test.lines+"\n}\nreverse_proxy {app}")
			for _, want := range []result{test.first, test.second} {
				s.want(s.send(signed(t, "gocardless", &provider.Delivery{
					Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(test.body),
				}, "gocardless-secret", time.Now())), test.status, want)
			}
			a.wantRuns(t, test.runs)
		})
	}
}

func TestBatchMisconfigured(t *testing.T) {
	if err := validate("{\n auto_https off\n}\n:80 {\n" + guarded("batch filter") + "\n}"); err == nil || !strings.Contains(err.Error(), "one event each") {
		t.Errorf("batch filter for a provider that sends no arrays: %v", err)
	}
}

func TestHandshakes(t *testing.T) {
	t.Setenv("SLACK_SECRET", "slack-secret")
	challenge := func() *http.Request {
		return signed(t, "slack", &provider.Delivery{
			Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(`{"token":"x","challenge":"3eZbrw1aB","type":"url_verification"}`),
		}, "slack-secret", time.Now())
	}
	const block = "webhook_dedup slack {\n secret {env.SLACK_SECRET}\n %s\n}\nreverse_proxy {app}"
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from the application") })
	s := start(t, a, memoryStore, fmt.Sprintf(block, ""))
	for range 2 { // never claimed
		g := s.send(challenge())
		s.want(g, http.StatusOK, resultPassed)
		if g.body != "from the application" {
			t.Errorf("answered %q", g.body)
		}
	}
	s = start(t, a, memoryStore, fmt.Sprintf(block, "handshake answer"))
	g := s.send(challenge())
	s.want(g, http.StatusOK, resultPassed)
	if !strings.Contains(g.body, "3eZbrw1aB") {
		t.Errorf("answered %q", g.body)
	}
	forged := challenge()
	forged.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("00", 32))
	s.want(s.send(forged), http.StatusUnauthorized, resultInvalidSignature)
	a.wantRuns(t, 2)
}

func TestHandshakeByGet(t *testing.T) {
	t.Setenv("META_SECRET", "meta-secret")
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from the application") })
	s := start(t, a, memoryStore, "webhook_dedup dropbox {\n secret {env.META_SECRET}\n handshake answer\n}\nreverse_proxy {app}")
	r, err := http.NewRequest(http.MethodGet, "http://hooks.example.com/?challenge=abc123", bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	g := s.send(r)
	s.want(g, http.StatusOK, resultPassed)
	if g.body != "abc123" {
		t.Errorf("answered %q", g.body)
	}
}
