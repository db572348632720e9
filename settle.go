package webhookdedup

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// forwardClaimed runs the application under the claim, records the outcome and answers with the application's own
// response.
func (d *delivery) forwardClaimed() error {
	d.tell(d.record.Attempts)
	d.reportChange()
	d.h.metrics.inFlight.Inc()
	defer d.h.metrics.inFlight.Dec()
	lease := d.keepLease()
	res := newResponse(d.w.Header(), d.h.MaxResponse)
	defer res.free()
	res.outgrown = func() http.ResponseWriter {
		if d.h.acknowledges(res.status) {
			lease.stop()
			d.complete(res, nil)
			d.mark(resultProcessed)
		} else {
			d.mark(resultFailed)
		}
		return d.streamTo(res)
	}
	started := time.Now()
	end := d.run(res)
	d.upstream, d.status, d.cause = time.Since(started), end.status, end.err
	d.h.metrics.processing.Observe(d.upstream.Seconds())
	if end.unknown {
		d.h.metrics.outcomeUnknown.Inc()
	}
	lease.stop()
	switch {
	case d.completed: // when the answer outgrew max_response
	case end.err == nil && d.h.acknowledges(end.status):
		d.complete(res, d.storable(res))
		d.mark(resultProcessed)
	default:
		d.h.metrics.failed(d.record.Attempts)
		d.release(end)
		d.mark(resultFailed)
	}
	return d.reply(end, res)
}

// forwardUnclaimed runs the application without a claim; nothing is recorded.
func (d *delivery) forwardUnclaimed(r result) error {
	d.mark(r)
	d.tell(0)
	if d.body == nil { // refused before its body was read; only in observe mode
		return d.next.ServeHTTP(d.w, d.r)
	}
	res := newResponse(d.w.Header(), d.h.MaxResponse)
	defer res.free()
	res.outgrown = func() http.ResponseWriter { return d.streamTo(res) }
	started := time.Now()
	end := d.run(res)
	d.upstream, d.status = time.Since(started), end.status
	if end.err != nil {
		d.cause = end.err
	}
	return d.reply(end, res)
}

// streamTo is the client of an answer that is too long to be kept back, or nil where the provider must not see it.
func (d *delivery) streamTo(res *response) http.ResponseWriter {
	if d.mustNotSucceed(res.status) {
		return nil
	}
	return d.w
}

// mustNotSucceed reports whether a status that says success to the provider is none to this route.
func (d *delivery) mustNotSucceed(status int) bool {
	return status >= 200 && status < 300 && !d.h.acknowledges(status) && !d.h.observes()
}

// reply sends what the application has answered. An error of a later handler is answered here: handle_errors could turn
// it into a 200.
func (d *delivery) reply(end outcome, res *response) error {
	switch {
	case d.h.observes() && end.panicked != nil:
		panic(end.panicked)
	case end.err != nil && res.started:
		d.logger().Warn("the application's answer was cut off after its beginning had been sent", zap.Error(end.err))
		panic(http.ErrAbortHandler) // the only way to tell the client that the answer is not whole
	case d.h.observes() && end.err != nil:
		return end.err
	case end.err != nil:
		d.answer(end.status, nil)
	case d.mustNotSucceed(end.status):
		d.answer(http.StatusBadGateway, nil)
	case !res.started:
		res.send(d.w)
	}
	return nil
}

// complete records that the application has acknowledged the event, before the provider sees a byte of its answer.
func (d *delivery) complete(res *response, stored []byte) {
	d.completed = true
	completion := claim.Completion{
		Key:        d.key,
		Token:      d.token,
		TTL:        time.Duration(d.h.TTL),
		Status:     res.status,
		Response:   stored,
		EventType:  d.eventType,
		BodySHA256: d.digest,
		OriginalID: d.originalID,
	}
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
		d.logger().Warn("the store had lost the record while the application was processing the event; it was written again")
	case err == nil:
	case isAnswer(err):
		d.h.metrics.leaseLost.Inc()
		d.logger().Warn("the application acknowledged the event, but its claim had been lost; the event may have been processed twice",
			zap.Error(err))
	default:
		d.logger().Error("the store failed after the application had acknowledged the event; the completion is retried", zap.Error(err))
		d.settleLater(&settlement{until: time.Now().Add(completion.TTL), completion: &completion})
	}
	d.shared.waiting.wake(d.key)
}

// release gives the claim back, so that a waiting delivery or the provider's retry processes the event.
func (d *delivery) release(end outcome) {
	released := claim.Release{Key: d.key, Token: d.token, Keep: d.h.keep, Status: end.status}
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
		d.logger().Warn("the event failed, and its claim had been lost", zap.Error(err))
	default:
		d.logger().Error("the store failed when the claim was to be released; the release is retried", zap.Error(err))
		d.settleLater(&settlement{until: time.Now().Add(time.Duration(d.h.Lease)), release: &released})
	}
	if end.unknown {
		d.logger().Warn("the outcome is unknown: the application may have processed the event; a retry will run it again",
			zap.Error(end.err))
	}
	d.shared.waiting.wake(d.key)
}

func (d *delivery) tryStore(operation func(claim.Store) error) error {
	store, err := d.shared.open()
	if err != nil {
		return err
	}
	return operation(store)
}

// reportChange warns of a redelivery whose body is not that of the first delivery.
func (d *delivery) reportChange() {
	first := d.record.BodySHA256
	if first != ([32]byte{}) && first != d.digest {
		d.h.metrics.payloadChanged.Inc()
		d.logger().Warn("a redelivery of the event has another body than its first delivery")
	}
}
