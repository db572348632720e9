package webhookdedup

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func TestSecrets(t *testing.T) {
	t.Setenv("WITH_BRACES", "a{http.request.host}b")
	t.Setenv("EMPTY", "")
	spec, _ := provider.Lookup("stripe")
	compiled, err := provider.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	request := caddy.NewReplacer()
	request.Set("http.vars.tenant", "secret-of-the-tenant")
	request.Set("http.vars.nothing", "")

	signsWith := func(keys []provider.Key, secret string) bool {
		d := provider.Delivery{Method: http.MethodPost, Body: []byte("{}")}
		if err := compiled.Sign(&d, secret, time.Now()); err != nil {
			t.Fatal(err)
		}
		return compiled.Verify(&d, keys, time.Now(), time.Minute) == nil
	}
	for _, test := range []struct {
		template string
		value    string // the secret in the end; empty: none
		atLoad   bool   // an error, or a value, already at load
	}{
		{"plain", "plain", true},
		{"a{b}c", "", false}, // a placeholder that nothing fills is never taken for a secret
		{"{not json}", "{not json}", true},
		{"{env.WITH_BRACES}", "a{http.request.host}b", true}, // a value is never a template
		{"{env.EMPTY}", "", true},
		{"{env.NOT_SET_ANYWHERE}", "", true},
		{"x{env.EMPTY}", "", true},
		{"{http.vars.tenant}", "secret-of-the-tenant", false},
		{"{http.vars.nothing}", "", false},
		{"{http.vars.unknown}", "", false},
		{"", "", true},
	} {
		t.Run(test.template, func(t *testing.T) {
			s, err := loadSecrets([]string{test.template}, compiled)
			if test.atLoad && test.value == "" {
				if err == nil {
					t.Fatal("accepted at load")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if known := len(s.keys) == 1; known != test.atLoad {
				t.Errorf("known at load: %v", known)
			}
			keys, err := s.forRequest(request, compiled)
			switch {
			case test.value == "" && (err == nil || len(keys) != 0):
				t.Errorf("%d keys, %v", len(keys), err)
			case test.value != "" && (err != nil || !signsWith(keys, test.value)):
				t.Errorf("does not verify: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret-of") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("secret old-secret"))
	for i, secret := range []string{testSecret, "old-secret"} {
		s.want(s.send(stripeRequest(t, fmt.Sprintf(`{"id":"evt_%d"}`, i), secret, time.Now())), http.StatusOK, resultProcessed)
	}
	s.want(s.send(stripeRequest(t, `{"id":"evt_3"}`, "older-secret", time.Now())), http.StatusUnauthorized, resultInvalidSignature)
}

func TestTolerance(t *testing.T) {
	a := newApp(t, nil)
	for _, test := range []struct {
		line string
		age  time.Duration
		ok   bool
	}{
		{"", 4 * time.Minute, true},
		{"", 6 * time.Minute, false},
		{"", -6 * time.Minute, false},
		{"tolerance 1h", 59 * time.Minute, true},
		{"tolerance 10s", time.Minute, false},
		{"tolerance off", 1000 * time.Hour, true},
	} {
		s := start(t, a, memoryStore, guarded(test.line, fmt.Sprintf("scope %s-%s", strings.ReplaceAll(test.line, " ", "-"), test.age)))
		g := s.send(stripeRequest(t, `{"id":"evt_1"}`, testSecret, time.Now().Add(-test.age)))
		if test.ok != (g.status == http.StatusOK) {
			t.Errorf("%q, %s old: %d %s", test.line, test.age, g.status, g.result)
		}
	}
}

func TestSignatureOff(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, "webhook_dedup stripe {\n signature off\n}\nreverse_proxy {app}")
	unsigned := event(t, "evt_1")
	unsigned.Header.Del("Stripe-Signature")
	s.want(s.send(unsigned), http.StatusOK, resultProcessed)
	s.logs("signatures are not verified")
}

func TestOwnProvider(t *testing.T) {
	t.Setenv("ACME_SECRET", "acme-secret")
	a := newApp(t, nil)
	s := start(t, a, `webhook_dedup {
		store memory
		provider acme {
			signature hmac-sha256 {
				header    X-Acme-Signature
				prefix    sha256=
				content   "{timestamp}.{http.request.method}.{header:X-Acme-Tenant}.{body}"
				timestamp header X-Acme-Timestamp
			}
			id  header X-Acme-Delivery
			id  json $.kind form kind
			event_type header X-Acme-Event
			ttl 3d
		}
	}`, "webhook_dedup acme {\n secret {env.ACME_SECRET}\n}\nreverse_proxy {app}")
	own := &OwnProvider{
		Signature: &provider.Scheme{
			Algorithm: "hmac-sha256", Header: "X-Acme-Signature", Prefix: "sha256=",
			Content:   "{timestamp}.{http.request.method}.{header:X-Acme-Tenant}.{body}",
			Timestamp: &provider.Timestamp{From: "header", Name: "X-Acme-Timestamp"},
		},
		ID: []provider.Part{provider.FromHeaders("X-Acme-Delivery")},
	}
	compiled, err := provider.Compile(own.spec("acme"))
	if err != nil {
		t.Fatal(err)
	}
	send := func(id, body string, header ...string) got {
		t.Helper()
		d := provider.Delivery{Method: http.MethodPost, Header: http.Header{}, Body: []byte(body),
			Placeholder: func(string) (string, bool) { return http.MethodPost, true }}
		d.Header.Set("X-Acme-Tenant", "t1")
		if id != "" {
			d.Header.Set("X-Acme-Delivery", id)
		}
		if err := compiled.Sign(&d, "acme-secret", time.Now()); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			d.Header.Set(header[i], header[i+1])
		}
		r, err := http.NewRequest(http.MethodPost, "http://hooks.example.com/acme", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = d.Header
		return s.send(r)
	}
	s.want(send("1", `{"kind":"a"}`), http.StatusOK, resultProcessed)
	s.want(send("1", `{"kind":"b"}`), http.StatusOK, resultProcessed)
	s.want(send("1", `{"kind":"a"}`), http.StatusOK, resultDuplicate)
	s.want(send("", `{"kind":"a"}`), http.StatusOK, resultPassed)
	s.want(send("1", `{}`), http.StatusOK, resultPassed)
	s.want(send("2", `{"kind":"a"}`, "X-Acme-Tenant", "t2"), http.StatusUnauthorized, resultInvalidSignature)
}
