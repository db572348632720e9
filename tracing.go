package webhookdedup

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// tracerName is the instrumentation scope of the module's spans.
const tracerName = "github.com/webhook-dedup/caddy-webhook-dedup"

// The spans of one delivery, children of the request's span that Caddy's `tracing` directive begins.
const (
	spanClaim    = "webhook_dedup.claim"
	spanWait     = "webhook_dedup.wait"
	spanComplete = "webhook_dedup.complete"
	spanRelease  = "webhook_dedup.release"
)

// Attributes of the request's span, and of its children.
const (
	attrProvider = attribute.Key("webhook_dedup.provider")
	attrResult   = attribute.Key("webhook_dedup.result")
	attrAttempt  = attribute.Key("webhook_dedup.attempt")
	attrEventID  = attribute.Key("webhook_dedup.event_id")
	attrOutcome  = attribute.Key("webhook_dedup.outcome")
	attrStore    = attribute.Key("webhook_dedup.store")
)

// The store's answers in the words of the spans.
var (
	completeOutcomes = [...]string{"", claim.Written: "written", claim.AlreadyWritten: "already written", claim.WrittenAnew: "written anew"}
	releaseOutcomes  = [...]string{"", claim.Released: "released", claim.AlreadyReleased: "already released", claim.Voided: "voided"}
)

// trace puts what became of the delivery on the request's span. Nothing is allocated where none is recorded.
func (d *delivery) trace() {
	span := trace.SpanFromContext(d.r.Context())
	if !span.IsRecording() {
		return
	}
	attributes := make([]attribute.KeyValue, 0, 4)
	attributes = append(attributes, attrProvider.String(d.h.spec.ID), attrResult.String(string(d.result)))
	if d.eventID != "" {
		attributes = append(attributes, attrEventID.String(d.eventID))
	}
	if d.record.Attempts > 0 {
		attributes = append(attributes, attrAttempt.Int(d.record.Attempts))
	}
	span.SetAttributes(attributes...)
}

// step is a span about a part of a delivery's way. Its zero value records nothing.
type step struct{ span trace.Span }

// step begins a child of the span that ctx carries.
func (d *delivery) step(ctx context.Context, name string) (context.Context, step) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, step{}
	}
	ctx, span := parent.TracerProvider().Tracer(tracerName).Start(ctx, name, trace.WithAttributes(attrStore.String(d.h.store.name)))
	return ctx, step{span}
}

// end ends the span with what the store has answered. An answer of the protocol is no error.
func (s step) end(outcome string, err error) {
	if s.span == nil {
		return
	}
	switch {
	case err == nil && outcome == "":
	case err == nil:
		s.span.SetAttributes(attrOutcome.String(outcome))
	case isAnswer(err):
		s.span.SetAttributes(attrOutcome.String(err.Error()))
	default:
		s.span.RecordError(err)
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}
