//go:build unix

package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

// load claims and completes new events until it is stopped, and remembers which completions it was told of.
type load struct {
	t    *testing.T
	s    *store
	stop chan struct{}
	wg   sync.WaitGroup

	failed, slow atomic.Int64
	lastFailure  atomic.Int64 // Unix milliseconds
	mu           sync.Mutex
	completed    []string
}

const opBound = 500 * time.Millisecond

func startLoad(t *testing.T, s *store, workers int) *load {
	l, name := &load{t: t, s: s, stop: make(chan struct{})}, claim.NewToken()
	for w := range workers {
		l.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
					l.event(fmt.Sprintf("evt_%x_%d_%d", name, w, i))
				}
			}
		})
	}
	return l
}

// event is one delivery.
func (l *load) event(key string, response ...byte) {
	token := claim.NewToken()
	err := l.bounded(func(ctx context.Context) error { _, _, err := l.s.Claim(ctx, ask(key, token)); return err })
	if err == nil {
		err = l.bounded(func(ctx context.Context) error {
			_, err := l.s.Complete(ctx, claim.Completion{Key: key, Token: token, TTL: time.Hour, Response: response})
			return err
		})
	}
	if err != nil {
		l.failed.Add(1)
		l.lastFailure.Store(time.Now().UnixMilli())
		time.Sleep(5 * time.Millisecond)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.completed = append(l.completed, key)
}

func (l *load) bounded(op func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(background, opBound)
	defer cancel()
	start := time.Now()
	err := op(ctx)
	if time.Since(start) > opBound+time.Second {
		l.slow.Add(1)
	}
	return err
}

// lost ends the load and counts the completions that the store was told of and has no more.
func (l *load) lost() (n int) {
	l.t.Helper()
	close(l.stop)
	l.wg.Wait()
	if n := l.slow.Load(); n > 0 {
		l.t.Errorf("%d operations hung beyond their context", n)
	}
	for _, key := range l.completed {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var r claim.Record
			err := l.bounded(func(ctx context.Context) (err error) { r, err = l.s.Get(ctx, key); return err })
			if err == nil && r.State == claim.Processed {
				break
			}
			if err == nil || errors.Is(err, claim.ErrNotFound) {
				n++
				break
			}
			if time.Now().After(deadline) {
				l.t.Fatal(err)
			}
		}
	}
	return n
}

// TestSentinelFailover has the sentinels replace a master under load: because they are told to, and because it is dead. In
// the former case the old master goes on for about a second, with the replica that was not promoted behind it: only
// completions that wait for both replicas know of it.
func TestSentinelFailover(t *testing.T) {
	for _, waiting := range []*Replicas{nil, replicate(2, "200ms")} {
		t.Run(fmt.Sprint("waiting ", waiting != nil), func(t *testing.T) {
			group := testredis.StartSentinel(t, testredis.Auth{})
			s := openStore(t, &Store{Address: group.Addrs(), Sentinel: testredis.MasterName, Replicas: waiting}, zap.NewNop())
			mustClaim(t, s, "warm", claim.NewToken(), claim.Granted)
			replaced := func(how string, replace func()) {
				t.Helper()
				unconfirmed := s.Unreplicated()
				l := startLoad(t, s, 8)
				time.Sleep(300 * time.Millisecond)
				begun := time.Now()
				replace()
				ended := time.Now()
				recovers(t, s)
				time.Sleep(time.Second)
				lost := l.lost()
				t.Logf("%s: %d completed, %d lost; %d not confirmed; %d deliveries told 503, the last %s after the beginning; the sentinels took %s",
					how, len(l.completed), lost, s.Unreplicated()-unconfirmed, l.failed.Load(),
					max(0, time.UnixMilli(l.lastFailure.Load()).Sub(begun)).Round(time.Millisecond), ended.Sub(begun).Round(time.Millisecond))
				if waiting != nil && uint64(lost) > s.Unreplicated()-unconfirmed {
					t.Errorf("%d completions are lost, %d were counted as not confirmed", lost, s.Unreplicated()-unconfirmed)
				}
				if len(l.completed) < 100 {
					t.Errorf("only %d events were completed", len(l.completed))
				}
			}
			replaced("failover by order", group.Failover)
			group.WaitReady()
			replaced("failover after kill -9", func() {
				old := group.Master()
				old.Kill()
				group.WaitMaster(func(master *testredis.Server) bool { return master != old })
			})
		})
	}
}

// TestWhatAFailoverForgets kills a master whose replicas have been frozen for a moment, which is what asynchronous
// replication can lose: without `replicas` silently, with it counted.
func TestWhatAFailoverForgets(t *testing.T) {
	for _, waiting := range []*Replicas{nil, replicate(1, "100ms")} {
		t.Run(fmt.Sprint("waiting ", waiting != nil), func(t *testing.T) {
			t.Parallel()
			group := testredis.StartSentinel(t, testredis.Auth{})
			s := openStore(t, &Store{Address: group.Addrs(), Sentinel: testredis.MasterName, Replicas: waiting}, zap.NewNop())
			l := &load{t: t, s: s, stop: make(chan struct{})}
			for i := range 40 {
				l.event(fmt.Sprint("before_", i))
			}
			base := s.Unreplicated() // a machine that does much else may be late now and then
			old := group.Master()
			time.Sleep(1500 * time.Millisecond) // until the replicas have all of it
			for _, server := range group.Servers {
				if server != old {
					server.Pause()
				}
			}
			var wg sync.WaitGroup
			for i := range 40 { // more than the sockets hold, where the replicas would find it
				wg.Go(func() { l.event(fmt.Sprint("frozen_", i), make([]byte, 1<<20)...) })
			}
			wg.Wait()
			old.Kill()
			for _, server := range group.Servers {
				if server != old {
					server.Resume()
				}
			}
			group.WaitMaster(func(master *testredis.Server) bool { return master != old })
			recovers(t, s)
			completed, lost := len(l.completed), l.lost()
			t.Logf("%d completed, of which 40 while the replicas were frozen; %d lost, %d counted", completed, lost, s.Unreplicated()-base)
			if lost > 40 || lost == 0 {
				t.Errorf("%d are lost", lost)
			}
			if waiting != nil && uint64(lost) > s.Unreplicated()-base {
				t.Errorf("%d are lost, only %d were counted", lost, s.Unreplicated()-base)
			}
		})
	}
}
