package chaos

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// inputStage is a stage on Redis that logs all that Caddy can log.
func inputStage(t *testing.T, lines string) *stage {
	t.Helper()
	return newStage(t, setting{store: "redis", lines: lines, global: "debug", site: "log"})
}

// Every way of not being signed is 401, touches neither the store nor the application, and no log holds the signature
// that would have been right.
func TestBadSignatures(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "")
	now := time.Now()
	event := harness.NewEvent("evt_forged")
	unix := strconv.FormatInt(now.Unix(), 10)
	mac := harness.StripeMAC(secret, unix, event.Body)
	tampered := bytes.Replace(event.Body, []byte("4200"), []byte("4201"), 1)
	const overflow = "99999999999999999999"
	cases := []struct {
		name       string
		body       []byte
		signatures []string
	}{
		{"unsigned", event.Body, nil},
		{"empty", event.Body, []string{""}},
		{"blank", event.Body, []string{"  "}},
		{"another key", event.Body, []string{harness.SignStripe("whsec_another", event.Body, now)}},
		{"empty key", event.Body, []string{harness.SignStripe("", event.Body, now)}},
		{"tampered", tampered, []string{harness.SignStripe("whsec_another", event.Body, now)}},
		{"body of another", append(bytes.Clone(event.Body), ' '), []string{"t=" + unix + ",v1=" + mac[:63] + flip(mac[63])}},
		{"stale", event.Body, []string{harness.SignStripe("whsec_another", event.Body, now.Add(-10*time.Minute))}},
		{"truncated", event.Body, []string{"t=" + unix + ",v1=" + mac[:32]}},
		{"one digit short", event.Body, []string{"t=" + unix + ",v1=" + mac[:63]}},
		{"no timestamp", event.Body, []string{"v1=" + flip(mac[0]) + mac[1:]}},
		{"no signature", event.Body, []string{"t=" + unix}},
		{"empty v1", event.Body, []string{"t=" + unix + ",v1="}},
		{"another scheme", event.Body, []string{"t=" + unix + ",v0=" + flip(mac[0]) + mac[1:]}},
		{"overflow", event.Body, []string{"t=" + overflow + ",v1=" + harness.StripeMAC("whsec_another", overflow, event.Body)}},
		{"negative", event.Body, []string{"t=-1,v1=" + harness.StripeMAC("whsec_another", "-1", event.Body)}},
		{"not a number", event.Body, []string{"t=now,v1=" + harness.StripeMAC("whsec_another", "now", event.Body)}},
		{"commas", event.Body, []string{strings.Repeat(",", 5000)}},
		{"hundreds of signatures", event.Body, []string{"t=" + unix + strings.Repeat(",v1="+strings.Repeat("0", 64), 200)}},
		{"not hex", event.Body, []string{"t=" + unix + ",v1=" + strings.Repeat("zz", 32)}},
	}
	for _, c := range cases {
		r := st.provider.Request(harness.Event{Body: c.body})
		r.Header["Stripe-Signature"] = c.signatures
		a := st.provider.Do(r)
		want(t, c.name, a, 401, "invalid_signature")
		if a.Body != "" {
			t.Errorf("%s: the answer has a body: %q", c.name, a.Body)
		}
	}
	st.wantUntouched(t)
	for name, body := range map[string][]byte{"event": event.Body, "tampered body": tampered} {
		if expected := harness.StripeMAC(secret, unix, body); st.Log.Contains(expected) {
			t.Errorf("the log holds the signature that the %s should have had", name)
		}
	}
	want(t, "a good one afterwards", st.provider.Deliver(event), 200, "processed")
}

// Signatures that are right but for their time, or that come twice.
func TestRightSignaturesThatDoNotCount(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis"})
	event := harness.NewEvent("evt_time")
	sign := func(at time.Time) string { return harness.SignStripe(secret, event.Body, at) }
	now := time.Now()
	withTimestamp := func(timestamp string) string {
		return "t=" + timestamp + ",v1=" + harness.StripeMAC(secret, timestamp, event.Body)
	}
	for name, signatures := range map[string][]string{
		"stale":              {sign(now.Add(-10 * time.Minute))},
		"from the future":    {sign(now.Add(10 * time.Minute))},
		"at the epoch":       {sign(time.Unix(0, 0))},
		"overflow":           {withTimestamp("99999999999999999999")},
		"largest int64":      {withTimestamp("9223372036854775807")},
		"smallest int64":     {withTimestamp("-9223372036854775808")},
		"not a number":       {withTimestamp("now")},
		"empty timestamp":    {withTimestamp("")},
		"twice the same":     {sign(now), sign(now)},
		"a wrong one beside": {sign(now), harness.SignStripe("whsec_another", event.Body, now)},
	} {
		r := st.provider.Request(event)
		r.Header["Stripe-Signature"] = signatures
		want(t, name, st.provider.Do(r), 401, "invalid_signature")
	}
	tampered := st.provider.Request(harness.Event{Body: bytes.Replace(event.Body, []byte("4200"), []byte("4201"), 1)})
	tampered.Header.Set("Stripe-Signature", sign(now))
	want(t, "tampered", st.provider.Do(tampered), 401, "invalid_signature")
	st.wantUntouched(t)

	rolling := st.provider.Request(event)
	rolling.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s,v1=%s,v0=old", now.Unix(),
		strings.Repeat("0", 64), harness.StripeMAC(secret, strconv.FormatInt(now.Unix(), 10), event.Body)))
	want(t, "one of two is right, as when a secret is being rolled", st.provider.Do(rolling), 200, "processed")
}

// wantUntouched fails the test if anything reached the application or the store.
func (st *stage) wantUntouched(t *testing.T) {
	t.Helper()
	if n := st.ledger.Total(); n != 0 {
		t.Errorf("%d refused deliveries reached the application", n)
	}
	if n := st.redis.Keys(t); n != 0 {
		t.Errorf("refused deliveries left %d keys in the store", n)
	}
}

func flip(digit byte) string {
	if digit == '0' {
		return "1"
	}
	return "0"
}

// Bodies that are too large, cut off or of another length than announced reach nothing.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "")
	huge := harness.Event{ID: "evt_huge", Body: fill("evt_huge", 30<<20)}
	// Whoever sends 30 MiB may be told while still sending, and then see a broken pipe instead of the answer.
	wantRefusal := func(what string, a harness.Answer) {
		t.Helper()
		if a.Err == nil {
			want(t, what, a, 413, "too_large")
		}
	}
	wantRefusal("30 MiB", st.provider.Deliver(huge))
	chunked := st.provider.Request(huge)
	chunked.ContentLength, chunked.Body = -1, io.NopCloser(bytes.NewReader(huge.Body))
	wantRefusal("30 MiB, length not announced", st.provider.Do(chunked))

	event := harness.NewEvent("evt_cut")
	head := func(length int) string {
		return fmt.Sprintf("POST /stripe HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n",
			st.Listen, harness.SignStripe(secret, event.Body, time.Now()), length)
	}
	// An announced length over the limit is refused before a byte of the body is there.
	status, result := st.raw(t, head(30<<20), false)
	wantRaw(t, "30 MiB announced, nothing sent", status, result, 413, "too_large")
	// More announced than sent, then the end of the upload: 400, if anybody is there to hear it.
	status, result = st.raw(t, head(len(event.Body)+100)+string(event.Body), true)
	if status != 0 {
		wantRaw(t, "length too long", status, result, 400, "bad_request")
	}
	status, result = st.raw(t, head(len(event.Body))+string(event.Body[:50]), true)
	if status != 0 {
		wantRaw(t, "upload cut off", status, result, 400, "bad_request")
	}
	// Less announced than sent: what was announced is not what was signed.
	status, result = st.raw(t, head(len(event.Body)-10)+string(event.Body), false)
	wantRaw(t, "length too short", status, result, 401, "invalid_signature")
	// Broken chunks.
	status, result = st.raw(t, strings.Replace(head(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)+"5\r\n{\"id\"\r\nzz\r\n", false)
	if status != 0 {
		wantRaw(t, "broken chunks", status, result, 400, "bad_request")
	}
	st.wantUntouched(t)
	want(t, "whole", st.provider.Deliver(event), 200, "processed")
}

// raw sends bytes on a connection of its own, half-closes it if asked to, and returns the status and the result word of
// the first answer; 0 if the connection ended without one.
func (st *stage) raw(t *testing.T, text string, halfClose bool) (status int, result string) {
	t.Helper()
	conn, err := net.Dial("tcp", st.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if halfClose {
		conn.(*net.TCPConn).CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Errorf("no answer: %v", err)
		}
		return 0, ""
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Webhook-Dedup")
}

func wantRaw(t *testing.T, what string, status int, result string, wantStatus int, wantResult string) {
	t.Helper()
	if status != wantStatus || result != wantResult {
		t.Errorf("%s: told %d %q, want %d %q", what, status, result, wantStatus, wantResult)
	}
}

// A compressed body is verified and passed on as it came.
func TestCompressedBodyIsPassedOnAsItCame(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	w.Write(harness.NewEvent("evt_gzip").Body)
	w.Close()
	event := harness.Event{Body: compressed.Bytes()}
	r := st.provider.Request(event)
	r.Header.Set("Content-Encoding", "gzip")
	if a := st.provider.Do(r); a.Status != 200 || a.Result != "processed" && a.Result != "passed" {
		t.Errorf("told %s", a)
	}
	digest := sha256.Sum256(event.Body)
	runs := st.ledger.Runs("")
	if len(runs) != 1 || runs[0].Digest != hex.EncodeToString(digest[:]) || runs[0].Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the application did not get the bytes that were signed: %d runs", len(runs))
	}
}

// missing are signed bodies without an event ID.
var missing = map[string]string{
	"empty body":     ``,
	"no ID":          `{"object":"event"}`,
	"empty ID":       `{"id":""}`,
	"null ID":        `{"id":null}`,
	"object ID":      `{"id":{"a":1}}`,
	"array":          `[{"id":"evt_1"}]`,
	"text":           `"evt_1"`,
	"invalid JSON":   `{"id":"evt_1"`,
	"two documents":  `{"id":"evt_1"} {"id":"evt_2"}`,
	"not JSON":       `id=evt_1`,
	"deep nesting":   strings.Repeat("[", 100_000),
	"deep and whole": strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
}

func TestMissingIDReject(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "on_missing_id reject")
	for name, body := range missing {
		want(t, name, st.provider.Deliver(harness.Event{Body: []byte(body)}), 400, "missing_id")
	}
	st.wantUntouched(t)
	want(t, "with an ID", st.provider.Deliver(harness.NewEvent("evt_1")), 200, "processed")
}

func TestMissingIDPass(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "on_missing_id pass")
	for name, body := range missing {
		for range 2 {
			want(t, name, st.provider.Deliver(harness.Event{Body: []byte(body)}), 200, "passed")
		}
	}
	if n := st.ledger.Total(); n != 2*len(missing) {
		t.Errorf("%d runs, want %d", n, 2*len(missing))
	}
	if n := st.redis.Keys(t); n != 0 {
		t.Errorf("%d keys in the store", n)
	}
}

func TestMissingIDHash(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "on_missing_id hash")
	for name, body := range missing {
		if body == "" {
			continue // whether nothing can be hashed is the provider's business
		}
		want(t, name, st.provider.Deliver(harness.Event{Body: []byte(body)}), 200, "processed")
		want(t, name+" again", st.provider.Deliver(harness.Event{Body: []byte(body)}), 200, "duplicate")
	}
}

// Event IDs that are unusual, and the key that the application is told.
func TestUnusualIDs(t *testing.T) {
	t.Parallel()
	st := inputStage(t, "on_missing_id reject")
	long := strings.Repeat("x", 10_000)
	digest := sha256.Sum256([]byte(long))
	for name, c := range map[string]struct{ body, key string }{
		"duplicate members":  {`{"id":"evt_first","id":"evt_last"}`, "stripe:evt_last"},
		"nested before":      {`{"data":{"id":"evt_inner"},"id":"evt_outer"}`, "stripe:evt_outer"},
		"control characters": {`{"id":"evt\u0000\r\nX-Evil: 1\u007f"}`, "stripe:evt%00%0D%0AX-Evil%3A%201%7F"},
		"separators":         {`{"id":"a:b%c d"}`, "stripe:a%3Ab%25c%20d"},
		"not ASCII":          {`{"id":"é"}`, "stripe:%C3%A9"},
		"10 kB":              {`{"id":"` + long + `"}`, "stripe:sha256-" + hex.EncodeToString(digest[:])},
	} {
		event := harness.Event{Body: []byte(c.body)}
		before := st.ledger.Total()
		a := st.provider.Deliver(event)
		want(t, name, a, 200, "processed")
		if a.Header.Get("X-Evil") != "" {
			t.Errorf("%s: the ID became a header of the answer", name)
		}
		want(t, name+" again", st.provider.Deliver(event), 200, "duplicate")
		if n := st.ledger.Total() - before; n != 1 {
			t.Errorf("%s: %d runs", name, n)
			continue
		}
		last := st.ledger.All()[before]
		if key := last.Header.Get("Webhook-Dedup-Key"); key != c.key {
			t.Errorf("%s: the application was told key %q, want %q", name, key, c.key)
		}
		if last.Header.Get("X-Evil") != "" {
			t.Errorf("%s: the ID became a header of the request", name)
		}
	}
}

// Two endpoints that get the same event do not hide it from each other; one endpoint with two queries is one.
func TestScope(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{})
	event := harness.NewEvent("evt_scope")
	other := harness.NewStripe(t, st.URL+"/another", secret, false)
	query := harness.NewStripe(t, st.provider.URL+"?tenant=1", secret, false)
	want(t, "one endpoint", st.provider.Deliver(event), 200, "processed")
	want(t, "another endpoint", other.Deliver(event), 200, "processed")
	want(t, "the first with a query", query.Deliver(event), 200, "duplicate")
	if n := len(st.ledger.Runs(event.ID)); n != 2 {
		t.Errorf("%d runs", n)
	}
}
