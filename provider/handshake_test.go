package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// TestAnswerHandshake: the answers to the kinds of handshakes that there are. The MAC of the challenge is npm braintree's 3.40.0.
func TestAnswerHandshake(t *testing.T) {
	mac := []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig", Prefix: "v0="}}
	derived := []provider.Scheme{{Algorithm: "hmac-sha1", Header: "X-Sig", KeyHash: "sha1", KeyName: "|"}}
	hexChallenge := []provider.Condition{{Source: provider.Source{From: "query", Name: "c"}, Pattern: "[a-f0-9]{20,32}"}}
	one := func(h provider.Handshake) []provider.Handshake { h.Name = "h"; return []provider.Handshake{h} }
	validation := one(provider.Handshake{Signed: true, When: when("json", "event", "url_validation"),
		Answer: &provider.Answer{Body: `{"plainToken":"{json:payload.token}","encryptedToken":"{mac:json:payload.token}"}`}})
	challenge := one(provider.Handshake{Signed: true, When: when("json", "type", "url_verification"), Answer: &provider.Answer{Body: "{json:challenge}"}})
	ping := []provider.Handshake{
		{Name: "event ping", Signed: true, When: when("json", "type", "0"), Answer: &provider.Answer{Status: 204}},
		{Name: "ping", Signed: true, When: append(when("json", "type", "1"), provider.Condition{Source: provider.Source{From: "json", Name: "event.type"}, Absent: true}),
			Answer: &provider.Answer{Body: `{"type":1}`}}}
	keyed := one(provider.Handshake{Method: "GET", EmptyBody: true, When: hexChallenge, Answer: &provider.Answer{Body: "{key_name}|{mac:query:c}"}})
	get := one(provider.Handshake{Method: "GET", EmptyBody: true, When: when("query", "challenge"), Answer: &provider.Answer{Body: "{query:challenge}"}})
	secretHeader := one(provider.Handshake{EmptyBody: true, When: when("header", "X-Hook-Secret"), Answer: &provider.Answer{Header: map[string]string{"x-hook-secret": "{header:X-Hook-Secret}"}}})
	head := one(provider.Handshake{Method: "HEAD", EmptyBody: true, Answer: &provider.Answer{}})
	form := one(provider.Handshake{Body: `webhook_id=\d+`, Answer: &provider.Answer{}})
	for _, tt := range []struct {
		name       string
		schemes    []provider.Scheme
		handshakes []provider.Handshake
		secrets    []string
		method     string
		query      string
		body       string
		headers    []string
		sign       string
		ok         bool
		status     int
		want       string
		wantHeader http.Header
	}{
		{name: "challenge", handshakes: challenge, body: `{"type":"url_verification","challenge":"3eZ"}`, sign: "k", ok: true, status: 200, want: "3eZ",
			wantHeader: http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}},
		{name: "challenge that is a page stays text", handshakes: challenge, body: `{"type":"url_verification","challenge":"<script>"}`, sign: "k", ok: true, status: 200, want: "<script>"},
		{name: "challenge, wrong key", handshakes: challenge, body: `{"type":"url_verification","challenge":"3eZ"}`, sign: "other"},
		{name: "challenge, unsigned", handshakes: challenge, body: `{"type":"url_verification","challenge":"3eZ"}`},
		{name: "no challenge", handshakes: challenge, body: `{"type":"url_verification"}`, sign: "k"},
		{name: "long challenge", handshakes: challenge, body: `{"type":"url_verification","challenge":"` + strings.Repeat("x", 5000) + `"}`, sign: "k"},
		{name: "an event", handshakes: challenge, body: `{"type":"event_callback","challenge":"3eZ"}`, sign: "k"},
		{name: "MAC of a token", handshakes: validation, body: `{"event":"url_validation","payload":{"token":"q\"x"}}`, sign: "k", ok: true, status: 200,
			want:       `{"plainToken":"q\"x","encryptedToken":"` + hex.EncodeToString(sum(sha256.New, "k", `q"x`)) + `"}`,
			wantHeader: http.Header{"Content-Type": {"application/json"}, "X-Content-Type-Options": {"nosniff"}}},
		{name: "MAC with the key that signed", secrets: []string{"new", "k"}, handshakes: validation, body: `{"event":"url_validation","payload":{"token":"q"}}`, sign: "k", ok: true, status: 200,
			want: `{"plainToken":"q","encryptedToken":"` + hex.EncodeToString(sum(sha256.New, "k", "q")) + `"}`},
		{name: "JSON without values", handshakes: ping, body: `{"type":1,"id":"1"}`, sign: "k", ok: true, status: 200, want: `{"type":1}`},
		{name: "status alone", handshakes: ping, body: `{"type":0}`, sign: "k", ok: true, status: 204, wantHeader: http.Header{}},
		{name: "type 1 with an event is an event", handshakes: ping, body: `{"type":1,"event":{"type":"X"}}`, sign: "k"},
		{name: "key name and derived key", schemes: derived, secrets: []string{"pub|private_key"}, handshakes: keyed, method: "GET", query: "c=20f9f8ed05f77439fe955c977e4c8a53",
			ok: true, status: 200, want: "pub|00248bfbd220faafe7e85c8d4696dbd82e6840ad"},
		{name: "no key name", schemes: derived, secrets: []string{"private_key"}, handshakes: keyed, method: "GET", query: "c=20f9f8ed05f77439fe955c977e4c8a53"},
		{name: "no key", schemes: derived, secrets: []string{}, handshakes: keyed, method: "GET", query: "c=20f9f8ed05f77439fe955c977e4c8a53"},
		{name: "a delivery for a challenge is not signed", schemes: derived, secrets: []string{"pub|private_key"}, handshakes: keyed, method: "GET", query: "c=PG5vdGlmaWNhdGlvbi8%2B"},
		{name: "GET", handshakes: get, method: "GET", query: "challenge=a%0Ab", ok: true, status: 200, want: "a\nb"},
		{name: "GET with a body", handshakes: get, method: "GET", query: "challenge=ab", body: "x"},
		{name: "POST for GET", handshakes: get, query: "challenge=ab"},
		{name: "echoed header", handshakes: secretHeader, headers: []string{"X-Hook-Secret", "s3"}, ok: true, status: 200, wantHeader: http.Header{"X-Hook-Secret": {"s3"}}},
		{name: "echoed header beside a body", handshakes: secretHeader, headers: []string{"X-Hook-Secret", "s3"}, body: "{}"},
		{name: "echoed header twice", handshakes: secretHeader, headers: []string{"X-Hook-Secret", "s3", "X-Hook-Secret", "s4"}},
		{name: "HEAD", handshakes: head, method: "HEAD", ok: true, status: 200, wantHeader: http.Header{}},
		{name: "form", handshakes: form, body: "webhook_id=12", ok: true, status: 200, wantHeader: http.Header{}},
		{name: "form with more", handshakes: form, body: "webhook_id=12&x=1"},
		{name: "without an answer", handshakes: one(provider.Handshake{EmptyBody: true})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schemes := tt.schemes
			if schemes == nil {
				schemes = mac
			}
			c := compile(t, provider.Spec{ID: "acme", Schemes: schemes, Handshakes: tt.handshakes})
			d := delivery(tt.body, tt.headers...)
			d.Query = tt.query
			if tt.method != "" {
				d.Method = tt.method
			}
			if tt.sign != "" {
				if err := c.Sign(d, tt.sign, now); err != nil {
					t.Fatal(err)
				}
			}
			secrets := tt.secrets
			if secrets == nil {
				secrets = []string{"k"}
			}
			var keys []provider.Key
			for _, s := range secrets {
				keys = append(keys, key(t, c, s))
			}
			status, header, body, ok := c.AnswerHandshake(d, keys)
			if ok != tt.ok || status != tt.status || string(body) != tt.want {
				t.Errorf("%v %d %q", ok, status, body)
			}
			if tt.wantHeader != nil {
				if len(header) != len(tt.wantHeader) {
					t.Errorf("header %v", header)
				}
				for name := range tt.wantHeader {
					if header.Get(name) != tt.wantHeader.Get(name) {
						t.Errorf("header %v", header)
					}
				}
			}
		})
	}
}

// TestUnsignedHandshakeHeaders: before the body is read, what may be an unsigned handshake is let through, and nothing else.
func TestUnsignedHandshakeHeaders(t *testing.T) {
	s := provider.Spec{ID: "acme", Schemes: []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig"}}, Handshakes: []provider.Handshake{
		{Name: "secret", EmptyBody: true, When: when("header", "X-Hook-Secret")},
		{Name: "get", Method: "GET", EmptyBody: true},
		{Name: "signed", Signed: true, When: when("header", "X-Challenge")},
	}}
	c := compile(t, s)
	for name, tt := range map[string]struct {
		headers []string
		want    error
	}{
		"handshake":                   {[]string{"X-Hook-Secret", "s"}, nil},
		"none":                        {nil, provider.ErrSignatureMissing},
		"signed handshake":            {[]string{"X-Challenge", "s"}, provider.ErrSignatureMissing},
		"with an empty signature":     {[]string{"X-Hook-Secret", "s", "X-Sig", ""}, provider.ErrSignatureMalformed},
		"with two different secrets":  {[]string{"X-Hook-Secret", "s", "X-Hook-Secret", "t"}, provider.ErrSignatureMissing},
		"with a signature, unchecked": {[]string{"X-Hook-Secret", "s", "X-Sig", "00"}, nil},
	} {
		if err := c.CheckHeaders(delivery("", tt.headers...).Header); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	// An event that only looks like the handshake by its headers is still refused once it is read.
	d := delivery("{}", "X-Hook-Secret", "s")
	if _, _, ok := c.Handshake(d); ok {
		t.Error("a body makes it none")
	}
	if err := c.Verify(d, []provider.Key{key(t, c, "k")}, now, 0); !errors.Is(err, provider.ErrSignatureMissing) {
		t.Error(err)
	}
}

// TestHandshakeScheme: a scheme for handshakes alone counts before the body is read if a handshake is delivered as an event is.
func TestHandshakeScheme(t *testing.T) {
	s := provider.Spec{ID: "acme", Schemes: []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig"}, {Algorithm: "token", Header: "X-Token", OnlyHandshakes: true}},
		Handshakes: []provider.Handshake{{Name: "h", Signed: true, When: when("json", "type", "ping")}}}
	c := compile(t, s)
	ping, event := delivery(`{"type":"ping"}`, "X-Token", "k"), delivery(`{"type":"event"}`, "X-Token", "k")
	if err := c.CheckHeaders(ping.Header); err != nil {
		t.Error(err)
	}
	if err := c.Verify(ping, []provider.Key{key(t, c, "k")}, now, 0); err != nil {
		t.Error(err)
	}
	if err := c.Verify(event, []provider.Key{key(t, c, "k")}, now, 0); !errors.Is(err, provider.ErrSignatureMissing) {
		t.Error(err)
	}
	s.Handshakes[0].Method = "GET"
	if err := compile(t, s).CheckHeaders(ping.Header); !errors.Is(err, provider.ErrSignatureMissing) {
		t.Error(err)
	}
}

func TestEmptyBatchHandshake(t *testing.T) {
	c := compile(t, provider.Spec{ID: "acme", Batch: &provider.Batch{Paths: []string{"$.events"}, EventID: []provider.Part{provider.FromJSONPaths("id")}},
		Handshakes: []provider.Handshake{{Name: "empty", Signed: true, EmptyBatch: true}}})
	for body, want := range map[string]bool{
		`{"destination":"U1","events":[]}`: true, `{"events":[{"id":1}]}`: false, `{"events":null}`: false, `{}`: false, `[]`: false, ``: false, `{"events":[`: false,
		`{"events":[1],"events":[]}`: true, `{"events":[],"events":[1]}`: false,
	} {
		if _, _, ok := c.Handshake(delivery(body)); ok != want {
			t.Errorf("%s: %v", body, ok)
		}
	}
}

func TestAnswerCompileErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		want string
		h    provider.Handshake
	}{
		"status":         {"200 to 299", provider.Handshake{Signed: true, Answer: &provider.Answer{Status: 404}}},
		"header name":    {"header name", provider.Handshake{Signed: true, Answer: &provider.Answer{Header: map[string]string{"a b": ""}}}},
		"header value":   {"header name", provider.Handshake{Signed: true, Answer: &provider.Answer{Header: map[string]string{"A": "{header:a b}"}}}},
		"path":           {"json path", provider.Handshake{Signed: true, Answer: &provider.Answer{Body: "{json:a..b}"}}},
		"signing oracle": {"pattern", provider.Handshake{EmptyBody: true, When: when("query", "c"), Answer: &provider.Answer{Body: "{mac:query:c}"}}},
		"pattern on another source": {"pattern", provider.Handshake{EmptyBody: true, When: []provider.Condition{{Source: provider.Source{From: "query", Name: "d"}, Pattern: "x"}},
			Answer: &provider.Answer{Body: "{mac:query:c}"}}},
		"empty batch without batches": {"no batches", provider.Handshake{Signed: true, EmptyBatch: true}},
	} {
		tt.h.Name = "h"
		if _, err := provider.Compile(provider.Spec{ID: "acme", Handshakes: []provider.Handshake{tt.h}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
