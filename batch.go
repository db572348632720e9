package webhookdedup

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// batch is a delivery that carries several events. Each is claimed by itself: providers regroup what they redeliver, so
// a batch as a whole is rarely seen twice.
type batch struct {
	*delivery
	events []*claimedEvent // distinct ones, in the order of their keys
	of     []*claimedEvent // by element; nil where an element has no ID and goes without a claim
	until  time.Time       // the end of waiting
}

// filterRounds bounds how many times one batch goes to the application under `filter`: once, and once more with what
// other deliveries had and gave back.
const filterRounds = 2

// split finds the events of the delivery; nil where it is no batch.
func (d *delivery) split() (*batch, *refusal) {
	elements, err := d.h.provider.Elements(&d.parsed)
	switch {
	case errors.Is(err, provider.ErrNotBatch):
		return nil, nil
	case err != nil:
		return nil, refuse(resultTooLarge, http.StatusRequestEntityTooLarge, err)
	}
	d.elements = len(elements)
	b := &batch{delivery: d, of: make([]*claimedEvent, len(elements)), until: d.arrived.Add(d.h.wait)}
	byKey := make(map[string]*claimedEvent, len(elements))
	scope := d.scope()
	for i, element := range elements {
		raw := d.h.provider.ElementBody(&d.parsed, element)
		e := &claimedEvent{eventType: element.Type, digest: digest(raw)}
		switch {
		case element.Parts != nil:
			e.eventID, e.originalID = eventID(element.Parts)
		case d.h.OnMissingID == missingIDReject:
			return nil, refuse(resultMissingID, http.StatusBadRequest, provider.ErrMissingID)
		case d.h.OnMissingID == missingIDHash:
			e.eventID = hashedID(raw)
		default:
			continue
		}
		e.key = d.h.key(scope, e.eventID).String()
		if byKey[e.key] == nil {
			byKey[e.key] = e
			b.events = append(b.events, e)
		}
		b.of[i] = byKey[e.key]
	}
	slices.SortFunc(b.events, func(a, b *claimedEvent) int { return cmp.Compare(a.key, b.key) })
	return b, nil
}

// serve claims what is new of the batch and forwards it.
func (b *batch) serve() error {
	if len(b.events) == 0 {
		return b.forwardUnclaimed(resultPassed)
	}
	b.shared = b.h.store.acquire()
	if b.h.Batch == batchFilter && !b.h.observes() {
		return b.filter()
	}
	return b.whole()
}

// claims are the answers for the events of a batch.
type claims struct {
	granted, busy []*claimedEvent
	failed        error // the store's
}

// claimAll claims the events singly, several at once, in the order of their keys; the first goes ahead alone, so that of
// two deliveries of one batch the second is stopped at it. With stopAtBusy no more are claimed once one is in flight. If
// the store fails, what was granted is released.
func (b *batch) claimAll(events []*claimedEvent, stopAtBusy bool) (c claims) {
	var mu sync.Mutex
	var stop atomic.Bool
	sent := time.Now()
	claimOne := func(e *claimedEvent) {
		if stop.Load() {
			return
		}
		if _, pending := b.shared.background.processed(e.key); pending {
			return
		}
		e.token, e.lost = claim.NewToken(), false
		outcome, err := b.claim(e)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil || outcome == claim.Refused:
			if c.failed = err; err == nil {
				c.failed = errRefusedToken
			}
			b.releaseLater(e)
			stop.Store(true)
		case outcome == claim.InFlight:
			c.busy = append(c.busy, e)
			stop.Store(stopAtBusy)
		case outcome == claim.Granted || outcome == claim.GrantedAgain:
			c.granted = append(c.granted, e)
		default:
			b.reportChange(e)
		}
	}
	claimOne(events[0])
	if len(events) > 1 {
		forEach(events[1:], claimOne)
	}
	if c.failed == nil && len(c.granted) > 0 && time.Since(sent) > b.h.renewEvery() {
		c.failed = b.renewAll(c.granted)
	}
	if c.failed != nil {
		b.giveBack(c.granted)
		c.granted = nil
	}
	return c
}

// renewAll restarts leases of which too much has gone while the rest of the batch was claimed.
func (b *batch) renewAll(granted []*claimedEvent) error {
	var mu sync.Mutex
	var failed error
	forEach(granted, func(e *claimedEvent) {
		ctx, cancel := b.storeContext()
		defer cancel()
		if err := b.renew(ctx, e); err != nil {
			mu.Lock()
			failed = err
			mu.Unlock()
		}
	})
	return failed
}

// giveBack releases claims under which nothing was run.
func (b *batch) giveBack(granted []*claimedEvent) {
	if len(granted) > 0 {
		forEach(granted, func(e *claimedEvent) { b.release(e, 0) })
	}
}

// whole forwards the untouched body under the claims of its new events, as soon as none is in flight.
func (b *batch) whole() error {
	for {
		c := b.claimAll(b.events, !b.h.observes())
		switch {
		case c.failed != nil:
			return b.storeError(c.failed)
		case len(c.busy) > 0 && !b.h.observes():
			b.giveBack(c.granted) // never waiting while holding
			if b.h.inFlight == inFlightAccept && len(c.granted) == 0 {
				return b.accept()
			}
			if !b.waitFor(c.busy) {
				return b.refuse(refuse(resultInFlight, b.h.inFlightStatus, nil))
			}
		case len(c.granted) > 0:
			return b.forwardClaimed(c.granted...)
		case len(c.busy) > 0:
			return b.forwardUnclaimed(resultInFlight)
		case slices.Contains(b.of, nil):
			return b.forwardUnclaimed(resultPassed)
		default:
			return b.answerDuplicate()
		}
	}
}

// filter forwards only what is new, at once, and then what other deliveries had and gave back. The provider is told
// success if every event is processed in the end.
func (b *batch) filter() error {
	left := b.events
	unidentified := slices.Contains(b.of, nil)
	var end outcome
	var res *response
	defer func() {
		if res != nil {
			res.free()
		}
	}()
	for round := 0; ; {
		c := b.claimAll(left, false)
		if c.failed != nil {
			return b.storeError(c.failed)
		}
		if len(c.granted) > 0 || unidentified && round == 0 {
			if err := b.keepOnly(c.granted, round == 0); err != nil {
				b.giveBack(c.granted)
				return b.whole() // a compressed body cannot be filtered
			}
			if res != nil {
				res.free()
			}
			res = newResponse(b.w.Header(), b.h.MaxResponse)
			if end = b.runRound(c, res); end.err != nil || !b.h.acknowledges(end.status) {
				return b.reply(end, res)
			}
			round++
		}
		switch {
		case len(c.busy) == 0 && res != nil:
			b.mark(resultProcessed)
			return b.reply(end, res)
		case len(c.busy) == 0:
			return b.answerDuplicate()
		case round == filterRounds || !b.waitFor(c.busy):
			return b.refuse(refuse(resultInFlight, b.h.inFlightStatus, nil))
		}
		left = c.busy
	}
}

// runRound runs the application with the elements that were kept. While others are in flight its answer cannot be
// streamed: it may not become the answer to the provider.
func (b *batch) runRound(c claims, res *response) outcome {
	stream := b.streamTo
	if len(c.busy) > 0 {
		stream = func(*response) http.ResponseWriter { return nil }
	}
	if len(c.granted) > 0 {
		return b.runClaimed(c.granted, res, stream)
	}
	b.tell(0)
	res.outgrown = func() http.ResponseWriter { return stream(res) }
	end := b.run(res)
	b.status, b.cause = end.status, end.err
	b.mark(resultPassed)
	return end
}

// keepOnly makes the body that the application gets: the elements of the granted events, and in the first round those
// that have no ID. Where that is all it is the body as it came.
func (b *batch) keepOnly(granted []*claimedEvent, first bool) error {
	wanted := make(map[*claimedEvent]bool, len(granted))
	for _, e := range granted {
		wanted[e] = true
	}
	keep := make([]bool, len(b.of))
	for i, e := range b.of {
		keep[i] = e == nil && first || wanted[e]
		wanted[e] = false // of an event that is in the batch twice, the first element goes
	}
	kept, err := b.h.provider.Filter(&b.parsed, func(i int) bool { return keep[i] })
	if err != nil {
		return err
	}
	if b.filtered != nil {
		b.filtered.release()
		b.filtered = nil
	}
	if len(kept) != len(b.parsed.Body) {
		b.filtered = bodyOf(kept)
	}
	return nil
}

// waitFor reports whether some of the busy events may be free by now, so that it is worth claiming again.
func (b *batch) waitFor(busy []*claimedEvent) bool {
	if b.h.inFlight != inFlightWait || time.Until(b.until) <= 0 {
		return false
	}
	b.key, b.record = busy[0].key, busy[0].record
	defer func() { b.key, b.record = "", claim.Record{} }()
	if !b.wait(b.until) {
		return false
	}
	// Deliveries that were stopped by each other must not try again in step.
	time.Sleep(rand.N(10 * time.Millisecond))
	return true
}

// storeError decides about a batch of which the store failed to claim a part; nothing of it is held any more.
func (b *batch) storeError(err error) error {
	b.cause = err
	if b.h.OnStoreError == storeErrorPass {
		return b.forwardUnclaimed(resultUnguarded)
	}
	return b.refuse(refuse(resultStoreError, http.StatusServiceUnavailable, err))
}
