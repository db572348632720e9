package webhookdedup

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// atOnce bounds how many operations of the store one delivery has under way: the events of a batch share round trips.
const atOnce = 64

// forEach calls f for every event, several at once, and returns when all calls have.
func forEach(events []*claimedEvent, f func(*claimedEvent)) {
	if len(events) == 1 {
		f(events[0])
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(atOnce, len(events)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(events)); i = next.Add(1) - 1 {
				f(events[i])
			}
		})
	}
	all.Wait()
}

// leaseKeeper renews claims every third of their lease while the application works, but not for longer than a run may
// take, so that a handler which ignores its timeout cannot block the events for ever.
type leaseKeeper struct {
	d      *delivery
	until  time.Time
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex      // held during a renewal
	claims  []*claimedEvent // that are not lost
	timer   *time.Timer
	stopped bool
}

func (d *delivery) keepLeases(claims []*claimedEvent) *leaseKeeper {
	k := &leaseKeeper{d: d, until: time.Now().Add(time.Duration(d.h.Timeout)), claims: claims}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.mu.Lock()
	k.timer = time.AfterFunc(d.h.renewEvery(), k.renew)
	k.mu.Unlock()
	return k
}

func (k *leaseKeeper) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || time.Now().After(k.until) {
		return
	}
	var failed atomic.Bool
	forEach(k.claims, func(e *claimedEvent) {
		switch err := k.d.renew(k.ctx, e); {
		case isAnswer(err):
			e.lost = true
			k.d.loggerOf(e).Warn("the claim was lost while the application was processing the event; the run goes on", zap.Error(err))
		case err != nil:
			failed.Store(true)
		}
	})
	k.claims = slices.DeleteFunc(slices.Clone(k.claims), func(e *claimedEvent) bool { return e.lost })
	again := k.d.h.renewEvery()
	if failed.Load() {
		again /= 4 // there is time for several more before the lease runs out
	}
	if len(k.claims) > 0 {
		k.timer.Reset(again)
	}
}

// stop ends the renewals. When it returns none is under way and none will follow, so that a token's first Complete or
// Release is the last word about it.
func (k *leaseKeeper) stop() {
	k.cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.timer.Stop()
}
