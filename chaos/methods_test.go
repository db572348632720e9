package chaos

import (
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// What is not a delivery and not a harmless look reaches no application, signed or not.
func TestOtherMethodsAreRefused(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	event := harness.NewEvent("evt_method")
	for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "BREW"} {
		for _, signed := range []bool{false, true} {
			r := st.provider.Request(event)
			r.Method = method
			if !signed {
				r.Header.Del("Stripe-Signature")
			}
			want(t, method, st.provider.Do(r), 405, "not_allowed")
		}
	}

	// An upgrade would leave HTTP behind, and the checks with it.
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT"} {
		r := newRequest(t, method, st.provider.URL, "")
		upgrade(r)
		want(t, method+" with an upgrade", st.provider.Do(r), 405, "not_allowed")
	}
	r := st.provider.Request(event)
	r.Header.Del("Stripe-Signature")
	upgrade(r)
	want(t, "unsigned POST with an upgrade", st.provider.Do(r), 401, "invalid_signature")

	// A body makes it more than a look.
	want(t, "GET with a body", st.provider.Do(newRequest(t, "GET", st.provider.URL, "{}")), 405, "not_allowed")
	want(t, "OPTIONS with a body", st.provider.Do(newRequest(t, "OPTIONS", st.provider.URL, "{}")), 405, "not_allowed")
	if n := st.ledger.Total(); n != 0 {
		t.Errorf("%d of them reached the application", n)
	}

	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		want(t, method, st.provider.Do(newRequest(t, method, st.provider.URL, "")), 200, "passed")
	}
	if n := st.ledger.Total(); n != 3 {
		t.Errorf("%d of three looks reached the application", n)
	}
}

// A signed delivery that asks for an upgrade is a delivery and nothing more.
func TestUpgradeIsStrippedFromADelivery(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	event := harness.NewEvent("evt_upgrade")
	r := st.provider.Request(event)
	upgrade(r)
	want(t, "the delivery", st.provider.Do(r), 200, "processed")
	for _, run := range st.ledger.Runs(event.ID) {
		if run.Header.Get("Upgrade") != "" || strings.Contains(strings.ToLower(run.Header.Get("Connection")), "upgrade") {
			t.Errorf("the application was asked for an upgrade: %v", run.Header)
		}
	}
}

// What the sender put under the module's own names does not reach the application.
func TestForgedModuleHeadersAreReplaced(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	event := harness.NewEvent("evt_headers")
	r := st.provider.Request(event)
	r.Header["Webhook-Dedup-Key"] = []string{"stripe:evt_of_somebody_else", "another"}
	r.Header["Webhook-Dedup-Attempt"] = []string{"99"}
	want(t, "the delivery", st.provider.Do(r), 200, "processed")
	run := st.ledger.WaitEnd(t, event.ID, 1)
	if key := run.Header["Webhook-Dedup-Key"]; len(key) != 1 || key[0] != "stripe:"+event.ID {
		t.Errorf("key %q", key)
	}
	if attempt := run.Header["Webhook-Dedup-Attempt"]; len(attempt) != 1 || attempt[0] != "1" {
		t.Errorf("attempt %q", attempt)
	}

	look := newRequest(t, "GET", st.provider.URL, "")
	look.Header.Set("Webhook-Dedup-Key", "stripe:evt_of_somebody_else")
	want(t, "a look", st.provider.Do(look), 200, "passed")
	for _, run := range st.ledger.Runs("") {
		if key := run.Header["Webhook-Dedup-Key"]; key != nil {
			t.Errorf("a request without a claim carries key %q", key)
		}
	}
}

func upgrade(r *http.Request) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
