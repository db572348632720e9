package webhookdedup

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// TestMetrics counts by a provider of its own, because collectors live as long as the process.
func TestMetrics(t *testing.T) {
	t.Setenv("METERED_SECRET", "metered-secret")
	const global = `webhook_dedup {
		store memory
		provider metered {
			signature hmac-sha256 {
				header X-Signature
			}
			id header X-Id
		}
	}`
	const block = "handle /metrics {\n metrics\n}\nhandle {\n webhook_dedup metered {\n  secret {env.METERED_SECRET}\n }\n reverse_proxy {app}\n}"
	own := OwnProvider{Signature: &provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Signature"}, ID: []provider.Part{provider.FromHeaders("X-Id")}}
	compiled, err := provider.Compile(own.spec("metered"))
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(t, nil)
	s := start(t, a, global, block)
	deliver := func(id, secret string) got {
		t.Helper()
		d := provider.Delivery{Method: http.MethodPost, Header: http.Header{"X-Id": {id}}, Body: []byte("{}")}
		if err := compiled.Sign(&d, secret, time.Now()); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, "http://hooks.example.com/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = d.Header
		return s.send(r)
	}
	s.want(deliver("1", "metered-secret"), http.StatusOK, resultProcessed)
	s.want(deliver("1", "metered-secret"), http.StatusOK, resultDuplicate)
	s.want(deliver("1", "metered-secret"), http.StatusOK, resultDuplicate)
	a.answer(status(http.StatusInternalServerError))
	s.want(deliver("2", "metered-secret"), http.StatusInternalServerError, resultFailed)
	s.want(deliver("2", "metered-secret"), http.StatusInternalServerError, resultFailed)
	s.want(deliver("3", "forged"), http.StatusUnauthorized, resultInvalidSignature)

	// Exactly these, before and after a reload with a second handler.
	want := []string{
		`caddy_webhook_dedup_deliveries_total{mode="enforce",provider="metered",result="processed"} 1`,
		`caddy_webhook_dedup_deliveries_total{mode="enforce",provider="metered",result="duplicate"} 2`,
		`caddy_webhook_dedup_deliveries_total{mode="enforce",provider="metered",result="failed"} 2`,
		`caddy_webhook_dedup_deliveries_total{mode="enforce",provider="metered",result="invalid_signature"} 1`,
		`caddy_webhook_dedup_deliveries_total{mode="enforce",provider="metered",result="passed"} 0`,
		`caddy_webhook_dedup_upstream_failures_total{attempt="first",provider="metered"} 1`,
		`caddy_webhook_dedup_upstream_failures_total{attempt="retry",provider="metered"} 1`,
		`caddy_webhook_dedup_processing_seconds_count{provider="metered"} 3`,
		`caddy_webhook_dedup_in_flight{provider="metered"} 0`,
		`caddy_webhook_dedup_waiting{provider="metered"} 0`,
		`caddy_webhook_dedup_lease_lost_total{provider="metered"} 0`,
		`caddy_webhook_dedup_outcome_unknown_total{provider="metered"} 0`,
		`caddy_webhook_dedup_payload_changed_total{provider="metered"} 0`,
		`caddy_webhook_dedup_pending_completions 0`,
		`caddy_webhook_dedup_store_seconds_count{op="claim",store="memory"}`,
		`caddy_webhook_dedup_store_errors_total{op="claim",store="memory"} 0`,
	}
	check := func() {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, "http://hooks.example.com/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		text := s.send(r).body
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
		if t.Failed() {
			t.Log(text)
		}
	}
	check()
	s = start(t, a, global, "header X-Changed yes\nhandle /other {\n webhook_dedup metered {\n  secret x\n }\n}\n"+block)
	check()
}
