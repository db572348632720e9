package webhookdedup

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// recorder stands for Caddy's tracing directive: each request gets a span, which is kept in memory.
var recorder = struct {
	sync.Mutex
	spans *tracetest.SpanRecorder
}{}

type recordSpans struct{}

func (recordSpans) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.record_spans", New: func() caddy.Module { return new(recordSpans) }}
}

func (recordSpans) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	recorder.Lock()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder.spans))
	recorder.Unlock()
	ctx, span := provider.Tracer("test").Start(r.Context(), "request")
	defer span.End()
	return next.ServeHTTP(w, r.WithContext(ctx))
}

func init() {
	caddy.RegisterModule(recordSpans{})
	httpcaddyfile.RegisterHandlerDirective("record_spans", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		return new(recordSpans), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("record_spans", httpcaddyfile.Before, "map")
}

func attributeOf(span sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range span.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestSpans(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, "webhook_dedup {\nstore faulty spans\n}", "record_spans\n"+guarded())
	// spansOf returns the spans of one delivery, children first, then the request's own.
	spansOf := func(r *http.Request, code int, result result) []sdktrace.ReadOnlySpan {
		t.Helper()
		recorder.Lock()
		recorder.spans = tracetest.NewSpanRecorder()
		recorder.Unlock()
		s.want(s.send(r), code, result)
		spans := recorder.spans.Ended()
		if len(spans) == 0 || spans[len(spans)-1].Name() != "request" {
			t.Fatalf("the request's span is not the last of %d", len(spans))
		}
		request := spans[len(spans)-1]
		if attributeOf(request, attrProvider) != "stripe" || attributeOf(request, attrResult) != string(result) {
			t.Errorf("the request's attributes are %v", request.Attributes())
		}
		for _, child := range spans[:len(spans)-1] {
			if child.Parent().SpanID() != request.SpanContext().SpanID() || attributeOf(child, attrStore) != "faulty" {
				t.Errorf("%s is no child of the request, or does not name the store: %v", child.Name(), child.Attributes())
			}
		}
		return spans
	}
	names := func(spans []sdktrace.ReadOnlySpan) string {
		var all []string
		for _, span := range spans[:len(spans)-1] {
			all = append(all, span.Name()+" "+attributeOf(span, attrOutcome))
		}
		return strings.Join(all, ", ")
	}

	a.answer(status(http.StatusInternalServerError))
	spans := spansOf(event(t, "evt_1"), http.StatusInternalServerError, resultFailed)
	if got := names(spans); got != "webhook_dedup.claim granted, webhook_dedup.release released" {
		t.Errorf("a failure: %s", got)
	}
	a.answer(nil)
	spans = spansOf(event(t, "evt_1"), http.StatusOK, resultProcessed)
	if got := names(spans); got != "webhook_dedup.claim granted, webhook_dedup.complete written" {
		t.Errorf("a retry: %s", got)
	}
	if request := spans[len(spans)-1]; attributeOf(request, attrAttempt) != "2" || attributeOf(request, attrEventID) != "evt_1" {
		t.Errorf("a retry: %v", request.Attributes())
	}
	if got := names(spansOf(event(t, "evt_1"), http.StatusOK, resultDuplicate)); got != "webhook_dedup.claim duplicate" {
		t.Errorf("a duplicate: %s", got)
	}
	forged := event(t, "evt_2")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	if got := names(spansOf(forged, http.StatusUnauthorized, resultInvalidSignature)); got != "" {
		t.Errorf("a forged one: %s", got)
	}
	failing(t, "spans", func(string) error { return errInjected })
	spans = spansOf(event(t, "evt_3"), http.StatusServiceUnavailable, resultStoreError)
	if claim := spans[0]; claim.Name() != spanClaim || claim.Status().Code != codes.Error || claim.Status().Description != errInjected.Error() {
		t.Errorf("a store that fails: %s %v", claim.Name(), claim.Status())
	}
}

// TestSpansOfTheTracingDirective: what Caddy's own directive exports has the module's spans in it.
func TestSpansOfTheTracingDirective(t *testing.T) {
	exported := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		sent, _ := io.ReadAll(body)
		exported <- string(sent)
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	s := start(t, newApp(t, nil), memoryStore, "tracing {\nspan hooks\n}\n"+guarded())
	s.want(s.deliver("evt_traced"), http.StatusOK, resultProcessed)
	all := ""
	for !strings.Contains(all, "webhook_dedup.result") {
		all += <-exported
	}
	for _, want := range []string{spanClaim, spanComplete, string(attrAttempt), "evt_traced", "granted", "written", tracerName} {
		if !strings.Contains(all, want) {
			t.Errorf("%s was not exported", want)
		}
	}
	if strings.Contains(all, testSecret) {
		t.Error("the secret was exported")
	}
}

func TestNoSpansCostNothing(t *testing.T) {
	h := &Handler{store: &storeHandle{name: "memory"}}
	d := &delivery{h: h, r: httptest.NewRequest("POST", "/", nil), result: resultProcessed, claimedEvent: claimedEvent{eventID: "evt_1", record: claim.Record{Attempts: 1}}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, step := d.step(ctx, spanClaim)
		step.end(claim.Granted.String(), nil)
		d.trace()
	}); n > 0 {
		t.Errorf("%v allocations a delivery that nobody traces", n)
	}
}

func TestOutcomesHaveWords(t *testing.T) {
	for _, words := range [][]string{completeOutcomes[1:], releaseOutcomes[1:]} {
		if len(words) != 3 || slices.Contains(words, "") {
			t.Errorf("%q", words)
		}
	}
}
