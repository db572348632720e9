package chaos

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// storeTimeout is the default of store_timeout; storeLimit is the longest that a delivery may take to be told that the
// store does not answer.
const (
	storeTimeout = 500 * time.Millisecond
	storeLimit   = storeTimeout + 1500*time.Millisecond
)

// wantStoreError fails the test unless a was told in time that the store failed, and when to come back.
func wantStoreError(t *testing.T, what string, a harness.Answer) {
	t.Helper()
	want(t, what, a, 503, "store_error")
	within(t, what, a.Took, storeLimit)
	if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("%s: Retry-After %q", what, a.Header.Get("Retry-After"))
	}
}

// A frozen Redis: every delivery is refused in time and none is run. Thawed, it works again by itself, and the claims
// that timed out, which it still applies, block no retry for longer than two seconds.
func TestFrozenRedis(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis", lines: "lease 30s"})
	want(t, "before", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "processed")

	st.redis.Freeze(t)
	var deliveries sync.WaitGroup
	for i := range 20 {
		deliveries.Go(func() {
			wantStoreError(t, "frozen", st.provider.Deliver(harness.NewEvent(fmt.Sprintf("evt_frozen_%d", i%10))))
		})
	}
	deliveries.Wait()
	wantStoreError(t, "still frozen", st.provider.Deliver(harness.NewEvent("evt_frozen_0")))
	wantStoreError(t, "processed before", st.provider.Deliver(harness.NewEvent("evt_before")))
	if n := st.ledger.Total(); n != 1 {
		t.Errorf("%d runs without a claim", n-1)
	}

	st.redis.Thaw(t)
	thawed := time.Now()
	for i := range 10 {
		deliveries.Go(func() {
			event := harness.NewEvent(fmt.Sprintf("evt_frozen_%d", i))
			answers := st.provider.UntilAccepted(event, 50*time.Millisecond, 20*time.Second)
			want(t, "the retry after the thaw", answers[len(answers)-1], 200, "processed")
			// Two seconds for the ghost of the claim, one for the delivery on a busy machine.
			within(t, "the way back", time.Since(thawed), 3*time.Second)
			wantRuns(t, st.ledger, event.ID, 1)
		})
	}
	deliveries.Wait()
	want(t, "processed before", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "duplicate")
}

// A dead Redis: the same, and back by itself once it is restarted.
func TestDeadRedis(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis"})
	want(t, "before", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "processed")
	st.redis.Kill()
	for range 5 {
		wantStoreError(t, "dead", st.provider.Deliver(harness.NewEvent("evt_dead")))
	}
	if n := st.ledger.Total(); n != 1 {
		t.Errorf("%d runs without a claim", n-1)
	}
	st.redis.Start(t)
	answers := st.provider.UntilAccepted(harness.NewEvent("evt_dead"), 100*time.Millisecond, 10*time.Second)
	want(t, "after the restart", answers[len(answers)-1], 200, "processed")
	wantRuns(t, st.ledger, "evt_dead", 1)
}

// Caddy starts, and reloads, without its Redis, and works once it is there.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	st := prepare(t, setting{store: "redis"})
	st.redis.Kill()
	st.Start(t, st.config)
	event := harness.NewEvent("evt_start")
	wantStoreError(t, "not there", st.provider.Deliver(event))
	next := st.config
	next.Mark = "next"
	if err := st.Load(next); err != nil {
		t.Errorf("reload: %v", err)
	}
	st.redis.Start(t)
	answers := st.provider.UntilAccepted(event, 100*time.Millisecond, 10*time.Second)
	want(t, "there", answers[len(answers)-1], 200, "processed")
}

// A network that swallows everything, or refuses, between Caddy and its Redis.
func TestCutNetwork(t *testing.T) {
	t.Parallel()
	redis := harness.NewRedis(t)
	network := harness.NewNetwork(t, redis.Address)
	st := newStage(t, setting{store: "redis", redis: "redis://" + network.Address + "/0"})
	want(t, "before", st.provider.Deliver(harness.NewEvent("evt_before")), 200, "processed")
	for name, fault := range map[string]func(){"cut": network.Cut, "blackout": network.Blackout} {
		event := harness.NewEvent("evt_" + name)
		fault()
		for range 3 {
			wantStoreError(t, name, st.provider.Deliver(event))
		}
		if n := len(st.ledger.Runs(event.ID)); n != 0 {
			t.Errorf("%s: %d runs without a claim", name, n)
		}
		network.Mend()
		answers := st.provider.UntilAccepted(event, 100*time.Millisecond, 10*time.Second)
		want(t, name+" mended", answers[len(answers)-1], 200, "processed")
		wantRuns(t, st.ledger, event.ID, 1)
	}
}

// on_store_error pass: the application is more available than the store, at the price of promise 2.
func TestStoreErrorPass(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis", lines: "on_store_error pass"})
	st.redis.Kill()
	event := harness.NewEvent("evt_pass")
	a := st.provider.Deliver(event)
	want(t, "without a store", a, 200, "unguarded")
	within(t, "without a store", a.Took, storeLimit)
	if runs := st.ledger.Runs(event.ID); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}

// Redis dies after the claim: the provider is told what the application said, and the record is written once Redis is
// back, though it has forgotten everything.
func TestRedisDiesAfterTheClaim(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis"})
	other := newStage(t, setting{store: "redis", redis: st.redis.URL(), app: st.ledger.Address})
	event := harness.NewEvent("evt_orphan")
	st.ledger.Plan(event.ID, harness.Reply{Delay: 2 * time.Second})
	first := make(chan harness.Answer, 1)
	go func() { first <- st.provider.Deliver(event) }()
	st.ledger.WaitStart(t, event.ID, 1)
	st.redis.Kill()
	want(t, "the delivery", <-first, 200, "processed")
	want(t, "a copy at the same process, without Redis", st.provider.Deliver(event), 200, "duplicate")

	st.redis.Start(t)
	harness.Eventually(t, 10*time.Second, "the record is written", func() bool { return st.redis.Keys(t) > 0 })
	want(t, "a copy at another process", other.provider.Deliver(event), 200, "duplicate")
	wantRuns(t, st.ledger, event.ID, 1)
}

// Redis is frozen after the claim and thawed after the answer: the record is written once it answers again.
func TestRedisFreezesAfterTheClaim(t *testing.T) {
	t.Parallel()
	st := newStage(t, setting{store: "redis", lines: "lease 10s"})
	other := newStage(t, setting{store: "redis", redis: st.redis.URL(), app: st.ledger.Address, lines: "lease 10s"})
	event := harness.NewEvent("evt_stuck")
	st.ledger.Plan(event.ID, harness.Reply{Delay: time.Second})
	first := make(chan harness.Answer, 1)
	go func() { first <- st.provider.Deliver(event) }()
	st.ledger.WaitStart(t, event.ID, 1)
	st.redis.Freeze(t)
	want(t, "the delivery", <-first, 200, "processed")
	st.redis.Thaw(t)
	want(t, "a copy at another process", other.provider.Deliver(event), 200, "duplicate")
	wantRuns(t, st.ledger, event.ID, 1)
}
