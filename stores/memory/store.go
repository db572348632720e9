package memory

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

const (
	shardCount = 64
	// sweepEvery is how often one shard is rid of what has expired; each has its turn every shardCount times that.
	sweepEvery = 250 * time.Millisecond
)

// clock is replaced by tests.
type clock func() time.Time

func realTime() time.Time { return time.Now() }

// store is a map in shards. Expiry is decided on reading; the sweep only gives memory back.
type store struct {
	now    clock
	seed   maphash.Seed
	shards [shardCount]shard
	stop   chan struct{}
	swept  sync.WaitGroup
}

type shard struct {
	mu      sync.Mutex
	entries map[string]claim.Entry
}

func open(now clock) *store {
	s := &store{now: now, seed: maphash.MakeSeed(), stop: make(chan struct{})}
	for i := range s.shards {
		s.shards[i].entries = map[string]claim.Entry{}
	}
	s.swept.Go(s.sweepAll)
	return s
}

func (s *store) sweepAll() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			s.sweep(&s.shards[i%shardCount])
		case <-s.stop:
			return
		}
	}
}

func (s *store) sweep(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	for key, e := range sh.entries {
		if e.At(now).State == 0 {
			delete(sh.entries, key)
		}
	}
}

// change applies step to the entry of key, under the lock of its shard, and returns what the entry is then.
func (s *store) change(key string, step func(now time.Time, e claim.Entry) claim.Entry) claim.Record {
	sh := &s.shards[maphash.String(s.seed, key)%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	e := step(now, sh.entries[key].At(now))
	if e.State == 0 {
		delete(sh.entries, key)
	} else {
		sh.entries[key] = e
	}
	r := e.Record(key, now)
	r.Response = bytes.Clone(r.Response)
	return r
}

// Claim implements [claim.Store].
func (s *store) Claim(ctx context.Context, c claim.Claim) (outcome claim.ClaimOutcome, r claim.Record, err error) {
	if err := refused(ctx, c.Check()); err != nil {
		return 0, claim.Record{}, err
	}
	r = s.change(c.Key, func(now time.Time, e claim.Entry) claim.Entry {
		e, outcome = e.Claim(now, c)
		return e
	})
	return outcome, r, nil
}

// Renew implements [claim.Store].
func (s *store) Renew(ctx context.Context, r claim.Renewal) (err error) {
	if err := refused(ctx, r.Check()); err != nil {
		return err
	}
	s.change(r.Key, func(now time.Time, e claim.Entry) claim.Entry {
		e, err = e.Renew(now, r)
		return e
	})
	return err
}

// Complete implements [claim.Store].
func (s *store) Complete(ctx context.Context, c claim.Completion) (outcome claim.CompleteOutcome, err error) {
	if err := refused(ctx, c.Check()); err != nil {
		return 0, err
	}
	c.Response = bytes.Clone(c.Response)
	s.change(c.Key, func(now time.Time, e claim.Entry) claim.Entry {
		e, outcome, err = e.Complete(now, c)
		return e
	})
	return outcome, err
}

// Release implements [claim.Store].
func (s *store) Release(ctx context.Context, r claim.Release) (outcome claim.ReleaseOutcome, err error) {
	if err := refused(ctx, r.Check()); err != nil {
		return 0, err
	}
	s.change(r.Key, func(now time.Time, e claim.Entry) claim.Entry {
		e, outcome, err = e.Release(now, r)
		return e
	})
	return outcome, err
}

// Get implements [claim.Store].
func (s *store) Get(ctx context.Context, key string) (claim.Record, error) {
	if err := refused(ctx, claim.CheckKey(key)); err != nil {
		return claim.Record{}, err
	}
	r := s.change(key, func(_ time.Time, e claim.Entry) claim.Entry { return e })
	if r.State == 0 {
		return r, claim.ErrNotFound
	}
	return r, nil
}

// Forget implements [claim.Store].
func (s *store) Forget(ctx context.Context, key string) (found bool, err error) {
	if err := refused(ctx, claim.CheckKey(key)); err != nil {
		return false, err
	}
	s.change(key, func(_ time.Time, e claim.Entry) claim.Entry {
		found = e.State != 0
		return claim.Entry{}
	})
	return found, nil
}

// List implements [claim.Store]. Records come in the order of their keys.
func (s *store) List(ctx context.Context, q claim.Query) (claim.Page, error) {
	after, err := claim.DecodeCursor(q.Cursor)
	if err := refused(ctx, err); err != nil {
		return claim.Page{}, err
	}
	var all []claim.Record
	s.each(func(r claim.Record) {
		if r.Key > after && q.Matches(r) {
			all = append(all, r)
		}
	})
	slices.SortFunc(all, func(a, b claim.Record) int { return strings.Compare(a.Key, b.Key) })
	p := claim.Page{Records: all}
	if limit := q.Bounded().Limit; len(all) > limit {
		p.Records = all[:limit]
		p.Cursor = claim.EncodeCursor(all[limit-1].Key)
	}
	for i := range p.Records {
		p.Records[i].Response = bytes.Clone(p.Records[i].Response)
	}
	return p, nil
}

// Stats implements [claim.Store].
func (s *store) Stats(ctx context.Context) (stats claim.Stats, err error) {
	if err := ctx.Err(); err != nil {
		return stats, err
	}
	s.each(stats.Count)
	return stats, nil
}

func (s *store) each(visit func(claim.Record)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		now := s.now()
		for key, e := range sh.entries {
			if r := e.Record(key, now); r.State != 0 {
				visit(r)
			}
		}
		sh.mu.Unlock()
	}
}

// Ping implements [claim.Store].
func (s *store) Ping(ctx context.Context) error { return ctx.Err() }

// Close implements [claim.Store].
func (s *store) Close() error {
	close(s.stop)
	s.swept.Wait()
	return nil
}

// refused is why a call is not carried out at all: wrong arguments, or a context that is done.
func refused(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return ctx.Err()
}

var _ claim.Store = (*store)(nil)
