package webhookdedup

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// Bounds of waiting. Over either of the first two a delivery in flight is answered at once instead of waiting.
const (
	maxWaitingPerKey = 1_000
	maxWaiting       = 10_000
	firstLook        = 20 * time.Millisecond
	longestLook      = time.Second
)

// waitRoom is where deliveries wait for the claim that another delivery holds. All that wait for one key share one
// watch, which looks at the record now and then on behalf of them all; a run that ends in this process wakes them at
// once. Waiting holds no connection of the store's.
type waitRoom struct {
	shared *sharedStore

	mu      sync.Mutex
	watches map[string]*watch
	waiting int
}

type watch struct {
	waiting int
	changed chan struct{} // closed at the next change
	poke    chan struct{} // somebody new is here: look soon
	cancel  context.CancelFunc
}

func (w *waitRoom) init(s *sharedStore) {
	w.shared, w.watches = s, map[string]*watch{}
}

// wait returns when the record of key may have changed, or after limit, or when the delivery's client has gone. It
// reports false without waiting where the room is full. lookTimeout bounds one look at the store.
func (w *waitRoom) wait(client context.Context, key string, limit, lookTimeout time.Duration) bool {
	changed, ok := w.enter(key, lookTimeout)
	if !ok {
		return false
	}
	defer w.leave(key)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-client.Done():
	}
	return true
}

func (w *waitRoom) enter(key string, lookTimeout time.Duration) (<-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.watches[key]
	if w.waiting >= maxWaiting || at != nil && at.waiting >= maxWaitingPerKey {
		return nil, false
	}
	if at == nil {
		ctx, cancel := context.WithCancel(context.Background())
		at = &watch{changed: make(chan struct{}), poke: make(chan struct{}, 1), cancel: cancel}
		w.watches[key] = at
		w.shared.handle.acquire()
		go w.look(ctx, key, at, lookTimeout)
	} else {
		select {
		case at.poke <- struct{}{}:
		default:
		}
	}
	w.waiting++
	at.waiting++
	return at.changed, true
}

func (w *waitRoom) leave(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.watches[key]
	w.waiting--
	at.waiting--
	if at.waiting == 0 {
		at.cancel()
		delete(w.watches, key)
	}
}

// wake tells all that wait for key that its record has changed.
func (w *waitRoom) wake(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.watches[key]; at != nil {
		close(at.changed)
		at.changed = make(chan struct{})
	}
}

// look reads the record at growing, jittered intervals until everybody has left, and wakes them when the key can be
// claimed or has been processed.
func (w *waitRoom) look(ctx context.Context, key string, at *watch, timeout time.Duration) {
	defer w.shared.handle.release()
	interval := firstLook
	for {
		timer := time.NewTimer(interval/2 + rand.N(interval))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-at.poke:
			timer.Stop()
			interval = firstLook
			select { // many that come at once are one look
			case <-ctx.Done():
				return
			case <-time.After(firstLook):
			}
		case <-timer.C:
			interval = min(interval*3/2, longestLook)
		}
		if !w.stillHeld(ctx, key, timeout) {
			w.wake(key)
		}
	}
}

// stillHeld reports whether the key is under a live lease, as far as the store can be asked.
func (w *waitRoom) stillHeld(ctx context.Context, key string, timeout time.Duration) bool {
	store, err := w.shared.open()
	if err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	record, err := store.Get(ctx, key)
	if err != nil {
		return !isAnswer(err)
	}
	return record.State == claim.Processing && record.Remaining > 0
}
