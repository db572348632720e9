package webhookdedup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
