//go:build unix

package redis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

// TestSlotMigration has many deliveries claim the same new keys of one slot while it is moved from master to master. Each
// key is granted once.
func TestSlotMigration(t *testing.T) {
	cluster := testredis.StartCluster(t)
	m := &Store{Address: cluster.Addrs(), Cluster: true, Replicas: replicate(1, "100ms")}
	stores := []*store{openStore(t, m, zap.NewNop()), openStore(t, m, zap.NewNop()), openStore(t, m, zap.NewNop())}
	const tag = "test:p:{one-slot}:"
	for i := range 300 {
		mustComplete(t, stores[0], fmt.Sprint(tag, "old_", i), claim.NewToken())
	}
	slot := cluster.KeySlot(stores[0].prefix + tag)

	var mu sync.Mutex
	grants, errs := map[string]int{}, map[string]int{}
	stop, round := make(chan struct{}), 0
	var wg sync.WaitGroup
	keys := make(chan string)
	wg.Go(func() {
		defer close(keys)
		for ; ; round++ {
			time.Sleep(2 * time.Millisecond) // else more keys come than can be moved
			for range 8 {                    // deliveries of one event at once
				select {
				case keys <- fmt.Sprint(tag, "new_", round):
				case <-stop:
					return
				}
			}
		}
	})
	for w := range 24 {
		s := stores[w%len(stores)]
		wg.Go(func() {
			for key := range keys {
				token := claim.NewToken()
				ctx, cancel := context.WithTimeout(background, 2*time.Second)
				outcome, _, err := s.Claim(ctx, ask(key, token))
				if err == nil && outcome == claim.Granted {
					mu.Lock()
					grants[key]++
					mu.Unlock()
					_, err = s.Complete(ctx, claim.Completion{Key: key, Token: token, TTL: time.Hour})
				}
				cancel()
				if err != nil {
					mu.Lock()
					errs[err.Error()]++
					mu.Unlock()
				}
			}
		})
	}
	moved := 0
	for i := range 4 {
		to := cluster.Nodes[i%3]
		if to == cluster.Owner(slot) {
			to = cluster.Nodes[(i+1)%3]
		}
		moved += cluster.MigrateSlot(slot, to, time.Millisecond)
	}
	close(stop)
	wg.Wait()
	for text, n := range errs {
		t.Logf("%d × %s", n, text)
		for _, sign := range []string{"CROSSSLOT", "TRYAGAIN", "NOSCRIPT", "ASK", "MOVED"} {
			if strings.Contains(text, sign) {
				t.Errorf("%s was not dealt with", sign)
			}
		}
	}
	for key, n := range grants {
		if n != 1 {
			t.Errorf("%q was granted %d times", key, n)
		}
		if _, err := stores[0].Get(background, key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for i := range 300 {
		mustClaim(t, stores[0], fmt.Sprint(tag, "old_", i), claim.NewToken(), claim.Duplicate)
	}
	t.Logf("%d events claimed by 8 deliveries each while %d keys were moved in 4 migrations; %d kinds of errors; not confirmed by a replica: %d",
		len(grants), moved, len(errs), stores[0].Unreplicated()+stores[1].Unreplicated()+stores[2].Unreplicated())
	if len(grants) < 100 || moved < 1000 {
		t.Error("too little happened")
	}
}

// TestOneMasterOfMany freezes one master: events of the others are none the slower. Then it dies, and its replica takes
// over without anybody's help.
func TestOneMasterOfMany(t *testing.T) {
	cluster := testredis.StartCluster(t)
	s := openStore(t, &Store{Address: cluster.Addrs(), Cluster: true}, zap.NewNop())
	keys := map[*testredis.Server][]string{}
	for i := range 60 {
		key := fmt.Sprint("evt_", i)
		owner := cluster.Owner(cluster.KeySlot(s.prefix + key))
		keys[owner] = append(keys[owner], key)
		mustClaim(t, s, key, claim.NewToken(), claim.Granted)
	}
	frozen := cluster.Nodes[1]
	frozen.Pause()
	var wg sync.WaitGroup
	for node, list := range keys {
		for _, key := range list {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := s.Get(ctx, key)
				if took := time.Since(start); node != frozen && (err != nil || took > 400*time.Millisecond) {
					t.Errorf("an event of a healthy master: %v after %s", err, took)
				} else if node == frozen && (err == nil || took > time.Second) {
					t.Errorf("an event of the frozen master: %v after %s", err, took)
				}
			})
		}
	}
	wg.Wait()
	frozen.Kill()
	start := time.Now()
	for ; ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		_, err := s.Get(ctx, keys[frozen][0])
		cancel()
		if err == nil {
			break
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal(err)
		}
	}
	t.Logf("the dead master's events are back after %s", time.Since(start).Round(10*time.Millisecond))
	for _, key := range keys[frozen] {
		mustClaim(t, s, key, claim.NewToken(), claim.InFlight)
	}
}

func BenchmarkClaimCompleteInCluster(b *testing.B) {
	cluster := testredis.StartCluster(b)
	s := openStore(b, &Store{Address: cluster.Addrs(), Cluster: true}, zap.NewNop())
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			token := claim.NewToken()
			key := fmt.Sprintf("%x", token)
			s.Claim(background, ask(key, token))
			s.Complete(background, claim.Completion{Key: key, Token: token, TTL: time.Hour})
		}
	})
}
