// Package claimtest is the contract that every store of the claim protocol passes. It shows the invariants and every
// answer of the protocol at the store itself, among them all of the look-alikes that a well-behaved caller would never
// notice. The package's own tests run it against stores that are broken on purpose.
package claimtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// Harness tells [Run] how to get at the store under test.
type Harness struct {
	// Open returns a store for one subtest and registers its closing with t.Cleanup. The stores of several subtests may
	// share their data: keys and providers are unique to each subtest.
	Open func(t *testing.T) claim.Store
	// Advance moves the clock of every store that Open returned. Without it the suite really waits, and runs its
	// subtests in parallel.
	Advance func(d time.Duration)
}

// Run holds a store to the contract.
func Run(t *testing.T, h Harness) {
	t.Run("contract", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				if h.Advance == nil {
					t.Parallel()
				}
				c.run(newEnv(t, h.Open(t), h.Advance))
			})
		}
	})
}

// reporter is what the cases need of a *testing.T, so that the suite itself can be tested.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

type testCase struct {
	name string
	run  func(e *env)
}

func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		grantCases, holderCases, finalCases, repeatCases, retentionCases, recordCases, adminCases, concurrencyCases,
		argumentCases, modelCases,
	} {
		all = append(all, group...)
	}
	return all
}

const (
	// long outlasts every test, however slow the machine.
	long = time.Hour
	// short is waited out, never raced against.
	short = 250 * time.Millisecond
	// opTimeout bounds a step of a store that hangs.
	opTimeout = 30 * time.Second
)

// env is what one case works with.
type env struct {
	reporter
	store    claim.Store
	advance  func(time.Duration)
	provider string
	// patience ends loops that a broken store would keep going.
	patience time.Duration
}

func newEnv(r reporter, s claim.Store, advance func(time.Duration)) *env {
	var id [8]byte
	rand.Read(id[:])
	return &env{reporter: r, store: s, advance: advance, provider: "p" + hex.EncodeToString(id[:]), patience: 2 * opTimeout}
}

// key returns a key that no other case uses.
func (e *env) key(id string) string {
	return claim.Key{Environment: "test", Provider: e.provider, Scope: "host/path", EventID: id}.String()
}

// pass lets d go by at the store, and a little more.
func (e *env) pass(d time.Duration) {
	if e.advance != nil {
		e.advance(d)
		return
	}
	time.Sleep(d + 30*time.Millisecond)
}

// late reports whether d has gone by since start, so that what was to happen within d may rightly have failed.
func (e *env) late(start time.Time, d time.Duration) bool {
	return e.advance == nil && time.Since(start) >= d
}

func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	_ = cancel // the step is over long before, and a leaked timer ends by itself
	return ctx
}

func digest(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func ask(key string, token claim.Token) claim.Claim {
	return claim.Claim{
		Key: key, Token: token, Lease: long, Keep: long, EventType: "charge.paid", BodySHA256: digest("first body"),
		OriginalID: "the beginning of a long ID",
	}
}

func askShort(key string, token claim.Token) claim.Claim {
	c := ask(key, token)
	c.Lease = short
	return c
}

func renewal(key string, token claim.Token) claim.Renewal {
	return claim.Renewal{Key: key, Token: token, Lease: long, Keep: long}
}

func completion(key string, token claim.Token) claim.Completion {
	return claim.Completion{
		Key: key, Token: token, TTL: long, Status: 200, EventType: "charge.paid", BodySHA256: digest("first body"),
		OriginalID: "the beginning of a long ID",
	}
}

func release(key string, token claim.Token) claim.Release {
	return claim.Release{Key: key, Token: token, Keep: long, Status: 500}
}

func (e *env) claim(c claim.Claim, want claim.ClaimOutcome) claim.Record {
	e.Helper()
	got, r, err := e.store.Claim(e.ctx(), c)
	if err != nil {
		e.Fatalf("claim: %v, want %q", err, want)
	}
	if got != want {
		e.Fatalf("claim: %q, want %q", got, want)
	}
	if r.Key != c.Key {
		e.Fatalf("claim: answered with the record of %q", r.Key)
	}
	return r
}

func (e *env) renew(r claim.Renewal, want error) {
	e.Helper()
	if err := e.store.Renew(e.ctx(), r); !is(err, want) {
		e.Fatalf("renew: %v, want %v", err, want)
	}
}

func (e *env) complete(c claim.Completion, want claim.CompleteOutcome) {
	e.Helper()
	if got, err := e.store.Complete(e.ctx(), c); err != nil || got != want {
		e.Fatalf("complete: %s, %v, want %s", completeWord(got), err, completeWord(want))
	}
}

func (e *env) completeFails(c claim.Completion, want error) {
	e.Helper()
	if got, err := e.store.Complete(e.ctx(), c); !is(err, want) {
		e.Fatalf("complete: %s, %v, want %v", completeWord(got), err, want)
	}
}

func (e *env) release(r claim.Release, want claim.ReleaseOutcome) {
	e.Helper()
	if got, err := e.store.Release(e.ctx(), r); err != nil || got != want {
		e.Fatalf("release: %s, %v, want %s", releaseWord(got), err, releaseWord(want))
	}
}

func (e *env) releaseFails(r claim.Release, want error) {
	e.Helper()
	if got, err := e.store.Release(e.ctx(), r); !is(err, want) {
		e.Fatalf("release: %s, %v, want %v", releaseWord(got), err, want)
	}
}

// is tells the errors of the protocol apart: a completion of somebody else is more than a lost lease.
func is(err, want error) bool {
	if want == nil || err == nil {
		return err == want
	}
	if want == claim.ErrLeaseLost && errors.Is(err, claim.ErrProcessedByOther) {
		return false
	}
	return errors.Is(err, want)
}

func (e *env) get(key string) claim.Record {
	e.Helper()
	r, err := e.store.Get(e.ctx(), key)
	if err != nil {
		e.Fatalf("get: %v", err)
	}
	if r.Key != key {
		e.Fatalf("get: answered with the record of %q", r.Key)
	}
	return r
}

func (e *env) state(key string, want claim.State) claim.Record {
	e.Helper()
	r := e.get(key)
	if r.State != want {
		e.Fatalf("the record is %s, want %s", r.State, want)
	}
	return r
}

func (e *env) absent(key string) {
	e.Helper()
	if r, err := e.store.Get(e.ctx(), key); !errors.Is(err, claim.ErrNotFound) {
		e.Fatalf("get: %s record, %v, want ErrNotFound", r.State, err)
	}
}

// processed brings key there with token.
func (e *env) processed(key string, token claim.Token) {
	e.Helper()
	e.claim(ask(key, token), claim.Granted)
	e.complete(completion(key, token), claim.Written)
}

// failed brings key there with token.
func (e *env) failed(key string, token claim.Token) {
	e.Helper()
	e.claim(ask(key, token), claim.Granted)
	e.release(release(key, token), claim.Released)
}

// unchanged runs step and fails if the record is another one afterwards.
func (e *env) unchanged(key string, step func()) {
	e.Helper()
	before := e.get(key)
	e.pass(2 * time.Millisecond)
	step()
	if diff := differ(before, e.get(key)); diff != "" {
		e.Fatalf("the record was changed: %s", diff)
	}
}

// differ names the first field that differs, except for what is left of the lease, which only counts as some or none.
func differ(a, b claim.Record) string {
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"key", a.Key, b.Key},
		{"state", a.State, b.State},
		{"token", a.Token, b.Token},
		{"lease", a.Lease, b.Lease},
		{"a live lease", a.Remaining > 0, b.Remaining > 0},
		{"first seen", a.FirstSeen.UnixMilli(), b.FirstSeen.UnixMilli()},
		{"updated", a.Updated.UnixMilli(), b.Updated.UnixMilli()},
		{"attempts", a.Attempts, b.Attempts},
		{"duplicates", a.Duplicates, b.Duplicates},
		{"event type", a.EventType, b.EventType},
		{"status", a.Status, b.Status},
		{"digest", a.BodySHA256, b.BodySHA256},
		{"original ID", a.OriginalID, b.OriginalID},
	} {
		if f.a != f.b {
			return fmt.Sprintf("%s is %v, was %v", f.name, f.b, f.a)
		}
	}
	if !bytes.Equal(a.Response, b.Response) || (a.Response == nil) != (b.Response == nil) {
		return fmt.Sprintf("response is %q, was %q", b.Response, a.Response)
	}
	return ""
}

func completeWord(o claim.CompleteOutcome) string {
	return word(uint8(o), "no outcome", "written", "already written", "written anew")
}

func releaseWord(o claim.ReleaseOutcome) string {
	return word(uint8(o), "no outcome", "released", "already released", "voided")
}

func word(i uint8, words ...string) string {
	if int(i) < len(words) {
		return words[i]
	}
	return fmt.Sprintf("outcome %d", i)
}
