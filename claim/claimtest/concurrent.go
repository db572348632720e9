package claimtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// concurrencyCases: many deliveries at once.
var concurrencyCases = []testCase{
	{"64 claims at once, one granted", func(e *env) {
		for round := range 8 {
			k := e.key(fmt.Sprint("evt_", round))
			outcomes := e.atOnce(64, k)
			if outcomes[claim.Granted] != 1 || outcomes[claim.InFlight] != 63 {
				e.Fatalf("64 claims at once: %v", outcomes)
			}
			if r := e.state(k, claim.Processing); r.Attempts != 1 {
				e.Fatalf("attempts %d", r.Attempts)
			}
		}
	}},
	{"64 claims at once on a failed key, one granted", func(e *env) {
		k := e.key("1")
		e.failed(k, claim.NewToken())
		if outcomes := e.atOnce(64, k); outcomes[claim.Granted] != 1 || outcomes[claim.InFlight] != 63 {
			e.Fatalf("64 claims at once: %v", outcomes)
		}
	}},
	{"64 takeovers at once, one granted", func(e *env) {
		k := e.key("1")
		e.claim(askShort(k, claim.NewToken()), claim.Granted)
		e.pass(short)
		if outcomes := e.atOnce(64, k); outcomes[claim.Granted] != 1 || outcomes[claim.InFlight] != 63 {
			e.Fatalf("64 claims at once: %v", outcomes)
		}
		if r := e.get(k); r.Attempts != 2 {
			e.Fatalf("attempts %d", r.Attempts)
		}
	}},
	{"64 duplicates at once are all answered", func(e *env) {
		k := e.key("1")
		e.processed(k, claim.NewToken())
		if outcomes := e.atOnce(64, k); outcomes[claim.Duplicate] != 64 {
			e.Fatalf("64 claims at once: %v", outcomes)
		}
		if n := e.get(k).Duplicates; n < 1 || n > 64 {
			e.Fatalf("counted %d of 64 duplicates", n)
		}
	}},
	{"one claim resent 16 times at once", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		var granted, again atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				switch got, _, err := e.store.Claim(e.ctx(), ask(k, token)); {
				case err != nil:
					e.Errorf("claim: %v", err)
				case got == claim.Granted:
					granted.Add(1)
				case got == claim.GrantedAgain:
					again.Add(1)
				}
			})
		}
		wg.Wait()
		if granted.Load() != 1 || again.Load() != 15 || e.get(k).Attempts != 1 {
			e.Fatalf("granted %d times, again %d times, attempts %d", granted.Load(), again.Load(), e.get(k).Attempts)
		}
	}},
	{"claim, run, fail, retry: runs never overlap", func(e *env) {
		const workers, keys, perKey = 32, 4, 25
		var running [keys]atomic.Int32
		var runs [keys]atomic.Int64
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(w)))
				for end := time.Now().Add(e.patience); runs[w%keys].Load() < perKey; {
					if time.Now().After(end) {
						e.Errorf("a failed event is not granted any more")
						return
					}
					i := w % keys
					k, token := e.key(fmt.Sprint("evt_", i)), claim.NewToken()
					got, r, err := e.store.Claim(e.ctx(), ask(k, token))
					if err != nil {
						e.Errorf("claim: %v", err)
						return
					}
					if got != claim.Granted {
						time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
						continue
					}
					if n := running[i].Add(1); n != 1 {
						e.Errorf("%d runs of one event at once", n)
					}
					if n := runs[i].Add(1); int64(r.Attempts) != n {
						e.Errorf("run %d was granted as attempt %d", n, r.Attempts)
					}
					time.Sleep(time.Duration(rnd.IntN(500)) * time.Microsecond)
					running[i].Add(-1)
					if _, err := e.store.Release(e.ctx(), release(k, token)); err != nil {
						e.Errorf("release: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		for i := range keys {
			k := e.key(fmt.Sprint("evt_", i))
			if r := e.state(k, claim.Failed); int64(r.Attempts) != runs[i].Load() {
				e.Errorf("%d attempts after %d runs", r.Attempts, runs[i].Load())
			}
		}
	}},
	{"claim, run, complete: each event once", func(e *env) {
		const workers, keys = 32, 60
		var runs [keys]atomic.Int32
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				end := time.Now().Add(e.patience)
				for i := range keys {
					k, token := e.key(fmt.Sprint("evt_", i)), claim.NewToken()
					for {
						got, _, err := e.store.Claim(e.ctx(), ask(k, token))
						if err != nil {
							e.Errorf("claim: %v", err)
							return
						}
						if got == claim.Duplicate {
							break
						}
						if time.Now().After(end) {
							e.Errorf("event %d stays in flight", i)
							return
						}
						if got != claim.Granted {
							time.Sleep(time.Millisecond)
							continue
						}
						runs[i].Add(1)
						if _, err := e.store.Complete(e.ctx(), completion(k, token)); err != nil {
							e.Errorf("complete: %v", err)
							return
						}
						break
					}
				}
			})
		}
		wg.Wait()
		for i := range keys {
			if n := runs[i].Load(); n != 1 {
				e.Errorf("event %d ran %d times", i, n)
			}
		}
	}},
	{"complete and release of one token at once agree", func(e *env) {
		for i := range 20 {
			k, token := e.key(fmt.Sprint("evt_", i)), claim.NewToken()
			e.claim(ask(k, token), claim.Granted)
			var completed, released error
			var wg sync.WaitGroup
			wg.Go(func() { _, completed = e.store.Complete(e.ctx(), completion(k, token)) })
			wg.Go(func() { _, released = e.store.Release(e.ctx(), release(k, token)) })
			wg.Wait()
			switch r := e.get(k); {
			case r.State == claim.Processed && completed == nil && is(released, claim.ErrProcessedBySelf):
			case r.State == claim.Failed && released == nil && is(completed, claim.ErrLeaseLost):
			default:
				e.Fatalf("the record is %s, complete said %v, release said %v", r.State, completed, released)
			}
		}
	}},
}

// atOnce sends n claims with tokens of their own at the same time and counts the answers.
func (e *env) atOnce(n int, key string) map[claim.ClaimOutcome]int {
	e.Helper()
	var mu sync.Mutex
	outcomes := map[claim.ClaimOutcome]int{}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			<-start
			got, _, err := e.store.Claim(e.ctx(), ask(key, claim.NewToken()))
			if err != nil {
				e.Errorf("claim: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[got]++
		})
	}
	close(start)
	wg.Wait()
	return outcomes
}
