//go:build unix

package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/memory"
)

const (
	clients = 12
	// opTimeout is what a client waits for an answer.
	opTimeout = 150 * time.Millisecond
	// perRound is how many calls are about the same three events, and lostInRound how many of them without an answer: the
	// check's time grows fast with those that overlap.
	perRound    = 90
	lostInRound = 9
)

// recorder takes down what clients call and what they are told.
type recorder struct {
	begin   time.Time
	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
	answers map[string]int

	round, calls, lost int
}

func newRecorder() *recorder { return &recorder{begin: time.Now(), answers: map[string]int{}} }

// key is one of the three events that are being delivered. After a while it is others.
func (r *recorder) key() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls++; r.calls > perRound || r.lost >= lostInRound {
		r.round, r.calls, r.lost = r.round+1, 0, 0
	}
	event := fmt.Sprint("evt_", r.round, "_", rand.IntN(3))
	return claim.Key{Environment: "proof", Provider: "p", Scope: "s", EventID: event}.String()
}

// call runs an operation and returns its answer, or nothing.
func (r *recorder) call(client int, s claim.Store, in input) string {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	in.from = int64(time.Since(r.begin))
	out := output{}
	var answered bool
	switch in.kind {
	case isClaim:
		got, rec, err := s.Claim(ctx, claim.Claim{Key: in.key, Token: in.token, Lease: in.lease, Keep: long})
		out.answer, answered = word(got.String(), err)
		out.attempts, out.token = rec.Attempts, rec.Token
	case isRenew:
		out.answer, answered = word("renewed", s.Renew(ctx, claim.Renewal{Key: in.key, Token: in.token, Lease: in.lease, Keep: long}))
	case isComplete:
		got, err := s.Complete(ctx, claim.Completion{Key: in.key, Token: in.token, TTL: long})
		out.answer, answered = word([]string{"", "written", "already", "anew"}[got], err)
	case isRelease:
		got, err := s.Release(ctx, claim.Release{Key: in.key, Token: in.token, Keep: long})
		out.answer, answered = word([]string{"", "released", "already", "void"}[got], err)
	case isGet:
		rec, err := s.Get(ctx, in.key)
		out.answer, answered = word(rec.State.String(), err)
		out.attempts, out.token = rec.Attempts, rec.Token
	case isForget:
		found, err := s.Forget(ctx, in.key)
		out.answer, answered = word(fmt.Sprint(found), err)
	}
	in.to = int64(time.Since(r.begin))
	end := in.to
	out.unknown = !answered
	if out.unknown {
		in.to, end = unanswered, unanswered
		out = output{unknown: true}
		time.Sleep(30*time.Millisecond + rand.N(30*time.Millisecond)) // a server that is down is asked often enough
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.unknown {
		r.unknown++
		r.lost++
		if in.kind == isGet {
			return "" // it has no effect: nothing is to be explained
		}
	}
	r.answers[fmt.Sprint(in.kind, " ", out.answer)]++
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: in, Call: in.from, Output: out, Return: end})
	return out.answer
}

// deliver is what one client does, for a while: a delivery of some event, as the module makes it, and things that it would
// never do.
func (r *recorder) deliver(client int, s claim.Store, until time.Time) {
	rnd := rand.New(rand.NewPCG(uint64(client), 11))
	for time.Now().Before(until) {
		in := input{key: r.key(), token: claim.NewToken(), lease: long}
		if rnd.IntN(3) == 0 {
			in.lease = 20 * time.Millisecond // often over before its end
		}
		call := func(k kind) string {
			in.kind = k
			return r.call(client, s, in)
		}
		switch rnd.IntN(20) {
		case 0:
			call(isForget)
			continue
		case 1:
			call(isComplete) // of what was never claimed
		case 2, 3:
			call(isGet)
		}
		answer := call(isClaim)
		if rnd.IntN(8) == 0 {
			answer = call(isClaim) // sent again
		}
		switch answer {
		case claim.Granted.String(), claim.GrantedAgain.String():
		case "":
			call(isRelease)
			continue
		default:
			time.Sleep(rand.N(3 * time.Millisecond))
			continue
		}
		time.Sleep(rand.N(5 * time.Millisecond))
		if rnd.IntN(3) == 0 {
			call(isRenew)
		}
		switch rnd.IntN(10) {
		case 0, 1:
			call(isComplete)
			if rnd.IntN(3) == 0 {
				call(isRelease)
			}
		case 2: // abandoned
		default:
			call(isRelease)
			if rnd.IntN(6) == 0 {
				call(isClaim)
			}
			if rnd.IntN(6) == 0 {
				call(isComplete)
			}
		}
	}
}

// watch lets clients on these nodes deliver for a while.
func watch(nodes []claim.Store, d time.Duration) *recorder {
	r := newRecorder()
	var wg sync.WaitGroup
	until := time.Now().Add(d)
	for c := range clients {
		wg.Go(func() { r.deliver(c, nodes[c%len(nodes)], until) })
	}
	wg.Wait()
	return r
}

func (r *recorder) check(t *testing.T) porcupine.CheckResult {
	t.Helper()
	start := time.Now()
	result, info := porcupine.CheckOperationsVerbose(order, r.history, time.Minute)
	t.Logf("%d operations, %d without an answer, checked in %s: %s", len(r.history), r.unknown, time.Since(start).Round(time.Millisecond), result)
	if result == porcupine.Illegal && os.Getenv("PROOF_VISUALIZE") != "" {
		path := filepath.Join(os.Getenv("PROOF_VISUALIZE"), filepath.Base(t.Name())+".html")
		if err := porcupine.VisualizePath(order, info, path); err == nil {
			t.Logf("see %s", path)
		}
	}
	return result
}

func (r *recorder) mustBeInOrder(t *testing.T) {
	t.Helper()
	switch r.check(t) {
	case porcupine.Illegal:
		t.Error("the answers contradict each other")
	case porcupine.Unknown:
		t.Error("the check did not come to an end")
	}
}

// TestOrder: what many clients saw at the same time can be put into one order.
func TestOrder(t *testing.T) {
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) {
			open, _ := b.start(t)
			r := watch([]claim.Store{open(), open(), open()}, 1500*time.Millisecond)
			r.mustBeInOrder(t)
			if len(r.answers) < 15 {
				t.Errorf("only these answers were seen: %v", r.answers)
			}
		})
	}
}

// TestOrderUnderFaults: also while the server is frozen, killed and started again.
func TestOrderUnderFaults(t *testing.T) {
	for _, b := range backends() {
		if !b.remote {
			continue // the file store's own tests kill its process
		}
		t.Run(b.name, func(t *testing.T) {
			open, server := b.start(t)
			nodes := []claim.Store{open(), open(), open()}
			for _, s := range nodes {
				if err := s.Ping(within(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 3 {
					time.Sleep(300 * time.Millisecond)
					server.Pause()
					time.Sleep(250 * time.Millisecond)
					server.Resume()
					time.Sleep(300 * time.Millisecond)
					server.Kill()
					time.Sleep(100 * time.Millisecond)
					server.Restart()
				}
			}()
			r := watch(nodes, 5*time.Second)
			<-done
			r.mustBeInOrder(t)
			if r.unknown == 0 {
				t.Error("the faults were not felt")
			}
		})
	}
}

// flawed breaks a right store in one way.
type flawed struct {
	claim.Store
	flaw string
	n    atomic.Int64
}

func (f *flawed) hits(flaw string, every int64) bool { return f.flaw == flaw && f.n.Add(1)%every == 0 }

func (f *flawed) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	got, r, err := f.Store.Claim(ctx, c)
	if got == claim.InFlight && f.hits("two hold the key", 5) {
		r.Token, r.Attempts = c.Token, r.Attempts+1
		return claim.Granted, r, err
	}
	return got, r, err
}

func (f *flawed) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	if f.hits("a completion is lost", 5) {
		return claim.Written, nil
	}
	return f.Store.Complete(ctx, c)
}

func (f *flawed) Release(ctx context.Context, c claim.Release) (claim.ReleaseOutcome, error) {
	if f.hits("plain DEL", 5) {
		f.Store.Forget(ctx, c.Key)
		return claim.Released, nil
	}
	return f.Store.Release(ctx, c)
}

func (f *flawed) Get(ctx context.Context, key string) (claim.Record, error) {
	if f.hits("a stale read", 5) {
		return claim.Record{}, claim.ErrNotFound
	}
	return f.Store.Get(ctx, key)
}

// TestCheckSees: a store that is wrong now and then is found out.
func TestCheckSees(t *testing.T) {
	for _, flaw := range []string{"two hold the key", "a completion is lost", "plain DEL", "a stale read"} {
		t.Run(flaw, func(t *testing.T) {
			s := &flawed{Store: openStore(t, &memory.Store{Name: t.Name()}), flaw: flaw}
			if r := watch([]claim.Store{s}, 300*time.Millisecond); r.check(t) != porcupine.Illegal {
				t.Error("it was not found out")
			}
		})
	}
}
