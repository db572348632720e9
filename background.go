package webhookdedup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// Bounds of the background work of one store.
const (
	maxPending          = 10_000
	maxPendingResponses = 1_000 // beyond it, completions are kept without their stored response
	settleAtOnce        = 32
	firstPause          = 50 * time.Millisecond
	longestPause        = time.Second
)

// errPendingOverflow: the store has been failing for so long that a completion or release had to be given up.
var errPendingOverflow = errors.New("too many completions and releases are pending")

// settlement is a completion or a release that the store has not confirmed yet.
type settlement struct {
	key     string
	timeout time.Duration // of one attempt
	until   time.Time     // when it has become worthless
	logger  *zap.Logger

	completion *claim.Completion // exactly one of these is set
	release    *claim.Release
	unknown    bool // the release is for a claim that may still be applied: that another holds the key ends nothing

	attempting bool // an attempt is under way; the lock of background guards it
}

// attempt sends it once. It reports false where the store failed and it is worth another attempt.
func (p *settlement) attempt(store claim.Store) bool {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	var err error
	if p.completion != nil {
		_, err = store.Complete(ctx, *p.completion)
	} else {
		_, err = store.Release(ctx, *p.release)
	}
	switch {
	case err != nil && !isAnswer(err), p.unknown && errors.Is(err, claim.ErrLeaseLost):
		return false
	case p.completion != nil && err != nil:
		p.logger.Error("the application acknowledged the event, but its claim was lost while the store failed", zap.Error(err))
	case p.completion != nil:
		p.logger.Info("completion written after the store had failed")
	}
	return true
}

// background settles what could not be settled while the delivery was there. One goroutine works as long as something
// is pending and holds a reference to the store meanwhile; it ends with its work.
type background struct {
	shared *sharedStore

	mu        sync.Mutex
	queue     []*settlement
	completed map[string]*settlement // pending completions by key
	working   bool
}

func (b *background) init(s *sharedStore) {
	b.shared, b.completed = s, map[string]*settlement{}
}

// processed returns the completion of key that is pending: for this process the event counts as processed.
func (b *background) processed(key string) (claim.Record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.completed[key]
	if p == nil {
		return claim.Record{}, false
	}
	c := p.completion
	return claim.Record{
		Key: key, State: claim.Processed, Token: c.Token, Attempts: 1, Status: c.Status,
		Response: c.Response, EventType: c.EventType, BodySHA256: c.BodySHA256,
	}, true
}

// pendingCompletions is how many events count as processed in this process alone.
func (b *background) pendingCompletions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.completed)
}

// forget gives up a pending completion, because an operator wants the event to be processed again.
func (b *background) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.completed[key]
	if p == nil {
		return
	}
	p.until = time.Time{}
	delete(b.completed, key)
	for p.attempting { // or it could write the record after it was forgotten
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
	}
}

// add takes over p, and works on it at once and again until it is done or worthless.
func (b *background) add(p *settlement) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) >= maxPending {
		return errPendingOverflow
	}
	if p.completion != nil {
		if len(b.queue) >= maxPendingResponses {
			p.completion.Response = nil
		}
		b.completed[p.key] = p
		metrics().pending.Inc()
		pendingWork.add()
	}
	b.queue = append(b.queue, p)
	if !b.working {
		b.working = true
		b.shared.handle.acquire()
		go b.work()
	}
	return nil
}

func (b *background) work() {
	defer b.shared.handle.release()
	pause := firstPause
	for {
		batch := b.take()
		if len(batch) == 0 {
			return
		}
		failed := b.settle(batch)
		if len(failed) == 0 {
			pause = firstPause
			continue
		}
		b.putBack(failed)
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// take removes the oldest settlements from the queue, without those that have become worthless. Where nothing is left
// the work is over.
func (b *background) take() []*settlement {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []*settlement
	now := time.Now()
	for len(b.queue) > 0 && len(batch) < settleAtOnce {
		p := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		if now.After(p.until) {
			b.over(p)
			if p.completion != nil && !p.until.IsZero() {
				p.logger.Error("completion given up: the store has failed for longer than the event would have been remembered")
			}
			continue
		}
		p.attempting = true
		batch = append(batch, p)
	}
	if len(batch) == 0 {
		b.queue, b.working = nil, false
	}
	return batch
}

// settle attempts all of batch at once and returns those that failed.
func (b *background) settle(batch []*settlement) (failed []*settlement) {
	done := make([]bool, len(batch))
	if store, err := b.shared.open(); err == nil {
		var attempts sync.WaitGroup
		for i, p := range batch {
			attempts.Go(func() { done[i] = p.attempt(store) })
		}
		attempts.Wait()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range batch {
		p.attempting = false
		if !done[i] {
			failed = append(failed, p)
			continue
		}
		b.over(p)
		b.shared.waiting.wake(p.key)
	}
	return failed
}

// over forgets p. The lock is held.
func (b *background) over(p *settlement) {
	if p.completion == nil {
		return
	}
	metrics().pending.Dec()
	pendingWork.done()
	if b.completed[p.key] == p {
		delete(b.completed, p.key)
	}
}

func (b *background) putBack(failed []*settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(failed, b.queue...)
}

// tracker counts what must end before the process may.
type tracker struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0; nil where nobody waits
}

// Runs at applications and pending completions of this process, whatever configuration they belong to. An HTTP/2 client
// that has gone makes the HTTP server forget its run, so the module has to wait for it when the process exits.
var runs, pendingWork tracker

func (t *tracker) add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

func (t *tracker) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns when nothing is left, or false after limit.
func (t *tracker) wait(limit time.Duration) bool {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return true
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-time.After(limit):
		return false
	}
}

// exit bounds how long the process stays for what is under way, however many routes there are.
var exit struct {
	once  sync.Once
	limit atomic.Int64 // the longest timeout of a route
}

// waitOnExit lets runs end and their outcome be recorded when the process is about to exit; on a reload they simply go
// on. All routes wait together.
func waitOnExit(logger *zap.Logger) {
	if !caddy.Exiting() {
		return
	}
	exit.once.Do(func() {
		if !runs.wait(time.Duration(exit.limit.Load())) {
			logger.Warn("exiting although applications are still processing events; their claims will run out")
		}
		if !pendingWork.wait(exitSettleLimit) {
			logger.Error("exiting although the store has not confirmed every outcome; those events may be processed again")
		}
	})
}

// allowRun notes how long a run of a route may take.
func allowRun(timeout time.Duration) {
	for {
		longest := exit.limit.Load()
		if int64(timeout) <= longest || exit.limit.CompareAndSwap(longest, int64(timeout)) {
			return
		}
	}
}

// exitSettleLimit is how long the process stays for a store that does not answer.
const exitSettleLimit = 5 * time.Second
