package webhookdedup

import (
	"errors"
	"net/http"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

var errRefusedToken = errors.New("the store refused a fresh token")

// verdict is what the claim has decided about a delivery.
type verdict uint8

const (
	verdictRefused   verdict = iota // answer the refusal
	verdictGranted                  // the claim is held: forward
	verdictDuplicate                // processed before
	verdictUnguarded                // the store failed and the route forwards all the same
	verdictAccepted                 // in flight, and the route answers 200 all the same
)

// acquire claims the event. While another delivery has it, this one waits and then claims again: the wait ends when
// that run has ended, in either way, or when its lease has run out.
func (d *delivery) acquire() (verdict, *refusal) {
	d.shared = d.h.store.acquire()
	d.token = claim.NewToken()
	waitUntil := d.arrived.Add(time.Duration(d.h.wait))
	for {
		if record, pending := d.shared.background.processed(d.key); pending {
			d.record = record
			return verdictDuplicate, nil
		}
		sent := time.Now()
		answer, err := d.claim(&d.claimedEvent)
		switch {
		case err != nil:
			return d.storeFailed(err)
		case answer == claim.Duplicate || answer == claim.ProcessedBySelf:
			return verdictDuplicate, nil
		case answer == claim.Granted || answer == claim.GrantedAgain:
			return d.refreshStale(sent)
		case answer == claim.Refused:
			return d.storeFailed(errRefusedToken)
		}
		if d.h.inFlight == inFlightAccept {
			return verdictAccepted, nil
		}
		if !d.wait(waitUntil) {
			return verdictRefused, refuse(resultInFlight, d.h.inFlightStatus, nil)
		}
	}
}

// storeFailed decides about a delivery whose claim has no answer. The claim may have been taken or may still be: its
// token is released in the background, so that the provider's retry is not blocked by it.
func (d *delivery) storeFailed(err error) (verdict, *refusal) {
	if record, pending := d.shared.background.processed(d.key); pending {
		d.releaseLater(&d.claimedEvent)
		d.record = record
		return verdictDuplicate, nil
	}
	d.cause = err
	if d.h.OnStoreError == storeErrorPass {
		return verdictUnguarded, nil
	}
	d.releaseLater(&d.claimedEvent)
	return verdictRefused, refuse(resultStoreError, http.StatusServiceUnavailable, err)
}

// refreshStale renews a claim whose answer took so long that too little may be left of its lease to start a run on.
func (d *delivery) refreshStale(sent time.Time) (verdict, *refusal) {
	if time.Since(sent) <= d.h.renewEvery() {
		return verdictGranted, nil
	}
	ctx, cancel := d.storeContext()
	defer cancel()
	switch err := d.renew(ctx, &d.claimedEvent); {
	case err == nil:
		return verdictGranted, nil
	case isAnswer(err):
		return verdictRefused, refuse(resultInFlight, d.h.inFlightStatus, err)
	default:
		return d.storeFailed(err)
	}
}

// wait reports whether the delivery should claim again. It should not when its time is over, when the provider has
// hung up or when too many are waiting.
func (d *delivery) wait(until time.Time) bool {
	limit := time.Until(until)
	if d.h.inFlight != inFlightWait || d.h.observes() || limit <= 0 {
		return false
	}
	if left := d.record.Remaining; left < limit {
		limit = left + time.Millisecond // by then the lease has run out, unless it was renewed
	}
	client := d.r.Context()
	_, step := d.step(client, spanWait)
	defer step.end("", nil)
	d.h.metrics.waiting.Inc()
	defer d.h.metrics.waiting.Dec()
	if !d.shared.waiting.wait(client, d.key, limit, time.Duration(d.h.StoreTimeout)) {
		d.cause = errors.New("too many deliveries are waiting")
		return false
	}
	return client.Err() == nil
}
