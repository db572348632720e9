package webhookdedup

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// claimedEvent is one event that a delivery carries, and what the store said of its claim.
type claimedEvent struct {
	eventID    string // encoded, as in the key
	originalID string // the beginning of one that was too long for the key
	eventType  string
	digest     [32]byte
	key        string
	token      claim.Token
	record     claim.Record // as the answer to the claim had it
	lost       bool         // a renewal was told so
}

// claim asks the store for the right to process the event.
func (d *delivery) claim(e *claimedEvent) (claim.ClaimOutcome, error) {
	store, err := d.shared.open()
	if err != nil {
		return 0, err
	}
	ctx, cancel := d.storeContext()
	defer cancel()
	ctx, step := d.step(ctx, spanClaim)
	outcome, record, err := store.Claim(ctx, claim.Claim{
		Key:        e.key,
		Token:      e.token,
		Lease:      time.Duration(d.h.Lease),
		Keep:       d.h.keep,
		EventType:  e.eventType,
		BodySHA256: e.digest,
		OriginalID: e.originalID,
	})
	step.end(outcome.String(), err)
	if err != nil {
		return 0, err
	}
	e.record = record
	return outcome, nil
}

// renew restarts the lease of the event's claim.
func (d *delivery) renew(ctx context.Context, e *claimedEvent) error {
	store, err := d.shared.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(d.h.StoreTimeout))
	defer cancel()
	return store.Renew(ctx, claim.Renewal{Key: e.key, Token: e.token, Lease: time.Duration(d.h.Lease), Keep: d.h.keep})
}

// complete records that the application has acknowledged the event, before the provider sees a byte of its answer.
func (d *delivery) complete(e *claimedEvent, status int, stored []byte) {
	completion := d.completion(e, status, stored)
	var outcome claim.CompleteOutcome
	err := d.tryStore(func(store claim.Store) (err error) {
		ctx, cancel := d.storeContext()
		defer cancel()
		ctx, step := d.step(ctx, spanComplete)
		outcome, err = store.Complete(ctx, completion)
		step.end(completeOutcomes[outcome], err)
		return err
	})
	switch {
	case err == nil && outcome == claim.WrittenAnew:
		d.h.metrics.leaseLost.Inc()
		d.loggerOf(e).Warn("the store had lost the record while the application was processing the event; it was written again")
	case err == nil:
	case isAnswer(err):
		d.h.metrics.leaseLost.Inc()
		d.loggerOf(e).Warn("the application acknowledged the event, but its claim had been lost; the event may have been processed twice",
			zap.Error(err))
	default:
		d.loggerOf(e).Error("the store failed after the application had acknowledged the event; the completion is retried", zap.Error(err))
		d.settleLater(e, &settlement{until: time.Now().Add(completion.TTL), completion: &completion})
	}
	d.shared.waiting.wake(e.key)
}

func (d *delivery) completion(e *claimedEvent, status int, stored []byte) claim.Completion {
	return claim.Completion{
		Key:        e.key,
		Token:      e.token,
		TTL:        time.Duration(d.h.TTL),
		Status:     status,
		Response:   stored,
		EventType:  e.eventType,
		BodySHA256: e.digest,
		OriginalID: e.originalID,
	}
}

// release gives the claim back, so that a waiting delivery or the provider's retry processes the event. The status is
// that of the application, 0 where it was not asked.
func (d *delivery) release(e *claimedEvent, status int) {
	released := claim.Release{Key: e.key, Token: e.token, Keep: d.h.keep, Status: status}
	err := d.tryStore(func(store claim.Store) error {
		ctx, cancel := d.storeContext()
		defer cancel()
		ctx, step := d.step(ctx, spanRelease)
		outcome, err := store.Release(ctx, released)
		step.end(releaseOutcomes[outcome], err)
		return err
	})
	switch {
	case err == nil:
	case isAnswer(err):
		d.h.metrics.leaseLost.Inc()
		d.loggerOf(e).Warn("the event failed, and its claim had been lost", zap.Error(err))
	default:
		d.loggerOf(e).Error("the store failed when the claim was to be released; the release is retried", zap.Error(err))
		d.settleLater(e, &settlement{until: time.Now().Add(time.Duration(d.h.Lease)), release: &released})
	}
	d.shared.waiting.wake(e.key)
}

// releaseLater releases a claim of which the store has not said what became of it.
func (d *delivery) releaseLater(e *claimedEvent) {
	d.settleLater(e, &settlement{
		until:   time.Now().Add(time.Duration(d.h.Lease)),
		release: &claim.Release{Key: e.key, Token: e.token, Keep: d.h.keep},
		unknown: true,
	})
}

// settleLater hands what the store did not confirm to the background.
func (d *delivery) settleLater(e *claimedEvent, p *settlement) {
	p.key, p.timeout, p.logger = e.key, time.Duration(d.h.StoreTimeout), d.loggerOf(e)
	if err := d.shared.background.add(p); err != nil {
		p.logger.Error("an outcome could not be kept for the store; the event may be processed again", zap.Error(err))
	}
}

func (d *delivery) tryStore(operation func(claim.Store) error) error {
	store, err := d.shared.open()
	if err != nil {
		return err
	}
	return operation(store)
}

// storeContext bounds one operation of the store. A client that hangs up does not end it: what became of a claim would
// be unknown.
func (d *delivery) storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(d.r.Context()), time.Duration(d.h.StoreTimeout))
}

// reportChange warns of a redelivery whose body is not that of the first delivery.
func (d *delivery) reportChange(e *claimedEvent) {
	first := e.record.BodySHA256
	if first != ([32]byte{}) && first != e.digest {
		d.h.metrics.payloadChanged.Inc()
		d.loggerOf(e).Warn("a redelivery of the event has another body than its first delivery")
	}
}

// loggerOf names the event in every line about something out of the ordinary.
func (d *delivery) loggerOf(e *claimedEvent) *zap.Logger {
	return d.h.limited.With(zap.String("provider", d.h.spec.ID), zap.String("event_id", e.eventID), zap.String("key", e.key))
}
