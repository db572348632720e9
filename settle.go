package webhookdedup

import (
	"net/http"
	"time"

	"go.uber.org/zap"
)

// forwardClaimed runs the application under the claims, records the outcome and answers with the application's own
// response.
func (d *delivery) forwardClaimed(claims ...*claimedEvent) error {
	res := newResponse(d.w.Header(), d.h.MaxResponse)
	defer res.free()
	end := d.runClaimed(claims, res, d.streamTo)
	return d.reply(end, res)
}

// runClaimed runs the application under the claims and records the outcome. stream gives the client of an answer that
// is too long to be kept back: its record is written when that is noticed.
func (d *delivery) runClaimed(claims []*claimedEvent, res *response, stream func(*response) http.ResponseWriter) outcome {
	attempt := 1
	for _, e := range claims {
		attempt = max(attempt, e.record.Attempts)
		d.reportChange(e)
	}
	d.tell(attempt)
	d.h.metrics.inFlight.Inc()
	defer d.h.metrics.inFlight.Dec()
	lease := d.keepLeases(claims)
	completed := false
	complete := func(stored []byte) {
		lease.stop()
		forEach(claims, func(e *claimedEvent) { d.complete(e, res.status, stored) })
		completed = true
		d.mark(resultProcessed)
	}
	res.outgrown = func() http.ResponseWriter {
		if d.h.acknowledges(res.status) {
			if d.h.replayLimit > 0 {
				d.logger().Warn("the response is longer than max_response and cannot be replayed; duplicates will get a plain 200")
			}
			complete(nil)
		} else {
			d.mark(resultFailed)
		}
		return stream(res)
	}
	started := time.Now()
	end := d.run(res)
	d.upstream, d.status, d.cause = time.Since(started), res.status, end.err
	d.h.metrics.processing.Observe(d.upstream.Seconds())
	switch {
	case completed: // when the answer outgrew max_response
		if end.unknown {
			d.h.metrics.outcomeUnknown.Inc()
		}
	case end.err == nil && d.h.acknowledges(end.status):
		complete(d.storable(res))
	default:
		lease.stop()
		d.fail(claims, end, attempt)
	}
	return end
}

// fail gives the claims of a run back that did not acknowledge its events.
func (d *delivery) fail(claims []*claimedEvent, end outcome, attempt int) {
	d.h.metrics.failed(attempt)
	forEach(claims, func(e *claimedEvent) { d.release(e, end.status) })
	if end.unknown {
		d.h.metrics.outcomeUnknown.Inc()
		d.logger().Warn("the outcome is unknown: the application may have processed the event; a retry will run it again",
			zap.Error(end.err))
	}
	d.mark(resultFailed)
}

// forwardUnguarded runs the application although the store has not answered the claim. Once it does, it is told what
// became of the event, so that later deliveries are duplicates.
func (d *delivery) forwardUnguarded() error {
	acknowledged := false
	defer func() {
		if !acknowledged {
			d.releaseLater(&d.claimedEvent)
		}
	}()
	return d.forward(resultUnguarded, func(end outcome, res *response) {
		if acknowledged = end.err == nil && d.h.acknowledges(end.status); acknowledged {
			completion := d.completion(&d.claimedEvent, end.status, d.storable(res))
			d.settleLater(&d.claimedEvent, &settlement{until: time.Now().Add(completion.TTL), completion: &completion})
		}
	})
}

// forwardUnclaimed runs the application without a claim; nothing is recorded.
func (d *delivery) forwardUnclaimed(r result) error {
	return d.forward(r, func(outcome, *response) {})
}

func (d *delivery) forward(r result, then func(outcome, *response)) error {
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
	d.upstream, d.status = time.Since(started), res.status
	if end.err != nil {
		d.cause = end.err
	}
	then(end, res)
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
