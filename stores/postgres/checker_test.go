//go:build unix

package postgres

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
)

// event is what the checker knows of one: it is not told by the store.
type event struct {
	running, runs atomic.Int64
	done          atomic.Bool
}

// clients is how many deliveries there are at a time, on two nodes.
const clients = 32

// storm lets clients deliver every event until it is processed. Some runs fail, and some are abandoned with
// their lease. It returns the runs
// and how many of them were abandoned, each of which somebody has taken over.
func storm(t *testing.T, nodes []*store, table string, keys int, fails, abandoned float64, lease time.Duration) (runs, takeovers int64) {
	t.Helper()
	events := make([]event, keys)
	var left atomic.Int64
	var wg sync.WaitGroup
	for w := range clients {
		s := nodes[w%len(nodes)]
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(w)))
			for _, i := range rnd.Perm(keys) {
				for end := time.Now().Add(2 * time.Minute); ; {
					if time.Now().After(end) {
						t.Errorf("event %d is never processed", i)
						return
					}
					e, c := &events[i], ask(fmt.Sprint(table, "_", i), claim.NewToken())
					c.Lease = lease
					got, r, err := s.Claim(background, c)
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					if got == claim.Duplicate {
						break
					}
					if got != claim.Granted {
						time.Sleep(min(r.Remaining, rand.N(3*time.Millisecond)))
						continue
					}
					n := e.runs.Add(1)
					if int64(r.Attempts) != n {
						t.Errorf("run %d of event %d was granted as attempt %d", n, i, r.Attempts)
					}
					if e.done.Load() {
						t.Errorf("event %d runs again", i)
					}
					if luck := rnd.Float64(); luck < abandoned {
						left.Add(1)
						continue
					} else if n := e.running.Add(1); n != 1 {
						t.Errorf("%d runs of event %d at once", n, i)
						return
					} else if luck < abandoned+fails {
						e.running.Add(-1)
						if _, err := s.Release(background, claim.Release{Key: c.Key, Token: c.Token, Keep: time.Hour}); err != nil {
							t.Errorf("release: %v", err)
						}
						continue
					}
					e.running.Add(-1)
					e.done.Store(true)
					if _, err := s.Complete(background, claim.Completion{Key: c.Key, Token: c.Token, TTL: time.Hour}); err != nil {
						t.Errorf("complete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range events {
		runs += events[i].runs.Load()
		if !events[i].done.Load() {
			t.Errorf("event %d is not processed", i)
		}
	}
	return runs, left.Load()
}

func TestHotKeys(t *testing.T) {
	server := testpostgres.Start(t, fast)
	bouncer := testpostgres.Bouncer(t, server, 8)
	for name, dsn := range map[string]string{"direct": server.DSN(), "PgBouncer": bouncer} {
		t.Run(name, func(t *testing.T) {
			nodes := []*store{openTest(t, Store{DSN: dsn}), openTest(t, Store{DSN: dsn})}
			if runs, _ := storm(t, nodes, name+"_once", 40, 0, 0, time.Hour); runs != 40 {
				t.Errorf("%d runs of 40 events", runs)
			}
			runs, _ := storm(t, nodes, name+"_fail", 60, 0.9, 0, time.Hour)
			t.Logf("9 of 10 fail: %d runs of 60 events", runs)
			runs, takeovers := storm(t, nodes, name+"_abandoned", 60, 0, 0.3, 200*time.Millisecond)
			t.Logf("3 of 10 are abandoned: %d runs of 60 events, %d takeovers", runs, takeovers)
			if runs != 60+takeovers {
				t.Errorf("%d runs of 60 events with %d takeovers", runs, takeovers)
			}
		})
	}
}
