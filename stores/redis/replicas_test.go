//go:build unix

package redis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
)

func replicate(n int, timeout string) *Replicas {
	d, err := time.ParseDuration(timeout)
	if err != nil {
		panic(err)
	}
	return &Replicas{Count: n, Timeout: caddy.Duration(d)}
}

func waitForReplicas(t *testing.T, server *testredis.Server, n int) {
	t.Helper()
	probe := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer probe.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if strings.Count(probe.Info(background, "replication").Val(), "state=online") == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the replicas do not follow")
		}
	}
}

// TestReplicas completes while a replica follows, is frozen, and is gone.
func TestReplicas(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	replica := testredis.Start(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
	waitForReplicas(t, master, 1)
	core, logs := observer.New(zap.WarnLevel)
	s := openStore(t, &Store{URL: master.URL(), Replicas: replicate(1, "150ms")}, zap.New(core))
	var counter ReplicationCounter = s

	run := func(key string) (took time.Duration) {
		t.Helper()
		token := claim.NewToken()
		mustClaim(t, s, key, token, claim.Granted)
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if got, err := s.Complete(ctx, claim.Completion{Key: key, Token: token, TTL: time.Hour}); err != nil || got != claim.Written {
			t.Errorf("complete %q: %d, %v", key, got, err)
		}
		return time.Since(start)
	}
	for i := range 50 {
		run(fmt.Sprint("confirmed_", i))
	}
	base := counter.Unreplicated()
	if base > 10 { // a machine that does much else may be late now and then
		t.Errorf("%d of 50 completions were not confirmed by a replica that follows", base)
	}

	replica.Pause()
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 100 {
		wg.Go(func() { run(fmt.Sprint("unconfirmed_", i)) })
	}
	// What does not complete is not held up: with one pipeline for both it would wait for each WAIT.
	for i := range 20 {
		begun := time.Now()
		mustClaim(t, s, fmt.Sprint("beside_", i), claim.NewToken(), claim.Granted)
		if took := time.Since(begun); took > 140*time.Millisecond {
			t.Errorf("a claim took %s beside completions that wait", took)
		}
	}
	wg.Wait()
	if n := counter.Unreplicated() - base; n != 100 {
		t.Errorf("%d of 100 completions were counted", n)
	}
	t.Logf("100 completions took %s while the replica was frozen", time.Since(start).Round(time.Millisecond))
	if n := logs.FilterMessageSnippet("not confirmed by the replicas").Len(); n != 1 {
		t.Errorf("%d warnings in less than a minute", n)
	}
	replica.Resume()

	replica.Kill()
	run("alone")
	if n := counter.Unreplicated() - base; n != 101 {
		t.Errorf("%d completions were counted", n)
	}
	// An answer is an answer, however long WAIT would go on.
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if got, err := s.Complete(ctx, claim.Completion{Key: "hurry", Token: claim.NewToken(), TTL: time.Hour}); err != nil || got != claim.WrittenAnew {
		t.Errorf("complete with little time: %d, %v", got, err)
	}
	if err := s.client.ScriptFlush(background).Err(); err != nil {
		t.Fatal(err)
	}
	run("after a flush")
}

// TestReplicasWithoutTheRight counts, and completes all the same.
func TestReplicasWithoutTheRight(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t, append([]string{"--user", "dedup", "on", ">secret", "~webhook_dedup:*"}, rights...)...)
	s := openStore(t, &Store{URL: "redis://dedup:secret@" + server.Addr, Replicas: replicate(1, "10ms")}, zap.NewNop())
	useEverything(t, s)
	if n := s.Unreplicated(); n != 10 {
		t.Errorf("%d completions were counted, want 10", n)
	}
}
