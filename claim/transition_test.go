package claim

import (
	"errors"
	"math"
	"testing"
	"time"
)

var (
	start = time.UnixMilli(1_800_000_000_000)
	t1    = Token{1}
	t2    = Token{2}
	sum1  = [32]byte{1}
	sum2  = [32]byte{2}
)

func ask(token Token) Claim {
	return Claim{Key: "k", Token: token, Lease: 30 * time.Second, Keep: time.Hour, EventType: "paid", BodySHA256: sum1}
}

func claimed(t *testing.T, token Token) Entry {
	t.Helper()
	e, outcome := Entry{}.Claim(start, ask(token))
	if outcome != Granted {
		t.Fatalf("first claim: %s", outcome)
	}
	return e
}

func TestClaimOutcomes(t *testing.T) {
	held := claimed(t, t1)
	failed, _, err := held.Release(start, Release{Key: "k", Token: t1, Keep: time.Hour, Status: 500})
	if err != nil {
		t.Fatal(err)
	}
	done, _, err := held.Complete(start, Completion{Key: "k", Token: t1, TTL: 24 * time.Hour, Status: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		entry    Entry
		after    time.Duration
		token    Token
		want     ClaimOutcome
		attempts int
	}{
		{"absent", Entry{}, 0, t1, Granted, 1},
		{"held by another", held, time.Second, t2, InFlight, 1},
		{"held by another to the last millisecond", held, 30*time.Second - time.Millisecond, t2, InFlight, 1},
		{"lease over", held, 30 * time.Second, t2, Granted, 2},
		{"own claim resent", held, time.Second, t1, GrantedAgain, 1},
		{"own claim resent after the lease", held, time.Minute, t1, GrantedAgain, 1},
		{"retention over", held, time.Hour, t2, Granted, 1},
		{"failed", failed, time.Second, t2, Granted, 2},
		{"released by this token", failed, time.Second, t1, Refused, 1},
		{"released by this token, retention over", failed, time.Hour, t1, Granted, 1},
		{"processed", done, time.Second, t2, Duplicate, 1},
		{"processed by this token", done, time.Second, t1, ProcessedBySelf, 1},
		{"processed, after the keep of its claim", done, 23 * time.Hour, t2, Duplicate, 1},
		{"processed, TTL over", done, 24 * time.Hour, t2, Granted, 1},
	} {
		got, outcome := c.entry.Claim(start.Add(c.after), ask(c.token))
		if outcome != c.want || got.Attempts != c.attempts {
			t.Errorf("%s: got %s with %d attempts, want %s with %d", c.name, outcome, got.Attempts, c.want, c.attempts)
		}
		if outcome == Granted || outcome == GrantedAgain {
			r := got.Record("k", start.Add(c.after))
			if r.State != Processing || r.Token != c.token || r.Remaining != 30*time.Second || r.Lease != 30*time.Second {
				t.Errorf("%s: granted with record %+v", c.name, r)
			}
		}
	}
}

func TestHistorySurvivesTakeover(t *testing.T) {
	e := claimed(t, t1)
	c := ask(t2)
	c.BodySHA256, c.EventType = sum2, ""
	later := start.Add(time.Minute)
	e, outcome := e.Claim(later, c)
	r := e.Record("k", later)
	if outcome != Granted || !r.FirstSeen.Equal(start) || r.Attempts != 2 || r.BodySHA256 != sum1 || r.EventType != "paid" {
		t.Errorf("%s: %+v", outcome, r)
	}
}

func TestClockSetBackCostsOneLease(t *testing.T) {
	e := claimed(t, t1)
	back := start.Add(-time.Hour)
	if r := e.Record("k", back); r.Remaining != 30*time.Second {
		t.Errorf("remaining %s, want one lease", r.Remaining)
	}
	e, outcome := e.Claim(back, ask(t2))
	if outcome != InFlight {
		t.Fatalf("got %s", outcome)
	}
	// The cut is kept: a lease later the key is free, although the first deadline is still most of an hour away.
	if _, outcome = e.Claim(back.Add(30*time.Second), ask(t2)); outcome != Granted {
		t.Errorf("a lease later: %s", outcome)
	}
}

func TestRenewCompleteReleaseAnswers(t *testing.T) {
	held := claimed(t, t1)
	renew := func(token Token) Renewal {
		return Renewal{Key: "k", Token: token, Lease: time.Minute, Keep: time.Hour}
	}
	complete := func(token Token) Completion {
		return Completion{Key: "k", Token: token, TTL: 24 * time.Hour, Status: 200, BodySHA256: sum2}
	}
	release := func(token Token) Release {
		return Release{Key: "k", Token: token, Keep: time.Hour, Status: 500}
	}
	failed, _, _ := held.Release(start, release(t1))
	done, _, _ := held.Complete(start, complete(t1))
	for _, c := range []struct {
		name       string
		entry      Entry
		after      time.Duration
		token      Token
		renewErr   error
		complete   CompleteOutcome
		compErr    error
		release    ReleaseOutcome
		releaseErr error
	}{
		{"absent", Entry{}, 0, t1, ErrLeaseLost, WrittenAnew, nil, Voided, nil},
		{"held", held, time.Second, t1, nil, Written, nil, Released, nil},
		{"held, lease over", held, time.Minute, t1, nil, Written, nil, Released, nil},
		{"held, retention over", held, time.Hour, t1, ErrLeaseLost, WrittenAnew, nil, Voided, nil},
		{"held by another", held, time.Second, t2, ErrLeaseLost, 0, ErrLeaseLost, 0, ErrLeaseLost},
		{"failed", failed, time.Second, t1, ErrLeaseLost, 0, ErrLeaseLost, AlreadyReleased, nil},
		{"failed by another", failed, time.Second, t2, ErrLeaseLost, 0, ErrLeaseLost, 0, ErrLeaseLost},
		{"processed", done, time.Second, t1, ErrProcessedBySelf, AlreadyWritten, nil, 0, ErrProcessedBySelf},
		{"processed by another", done, time.Second, t2, ErrLeaseLost, 0, ErrProcessedByOther, 0, ErrLeaseLost},
	} {
		now := start.Add(c.after)
		e, err := c.entry.Renew(now, renew(c.token))
		if err != c.renewErr {
			t.Errorf("%s: renew: %v, want %v", c.name, err, c.renewErr)
		}
		if r := e.Record("k", now); err == nil && r.Remaining != time.Minute {
			t.Errorf("%s: renewed, remaining %s", c.name, r.Remaining)
		}
		e, co, err := c.entry.Complete(now, complete(c.token))
		if co != c.complete || err != c.compErr {
			t.Errorf("%s: complete: %d, %v, want %d, %v", c.name, co, err, c.complete, c.compErr)
		}
		if r := e.Record("k", now); err == nil && (r.State != Processed || r.Lease != 0 || r.Attempts != 1) {
			t.Errorf("%s: completed: %+v", c.name, r)
		}
		e, ro, err := c.entry.Release(now, release(c.token))
		if ro != c.release || err != c.releaseErr {
			t.Errorf("%s: release: %d, %v, want %d, %v", c.name, ro, err, c.release, c.releaseErr)
		}
		if r := e.Record("k", now); err == nil && (r.State != Failed || r.Lease != 0) {
			t.Errorf("%s: released: %+v", c.name, r)
		}
	}
	if !errors.Is(ErrProcessedByOther, ErrLeaseLost) {
		t.Error("ErrProcessedByOther is not an ErrLeaseLost")
	}
}

func TestDigestOfTheFirstDeliveryIsKept(t *testing.T) {
	e, _, _ := claimed(t, t1).Complete(start, Completion{Key: "k", Token: t1, TTL: time.Hour, BodySHA256: sum2})
	if e.BodySHA256 != sum1 {
		t.Error("the completion replaced the first digest")
	}
	e, _, _ = Entry{}.Release(start, Release{Key: "k", Token: t1, Keep: time.Hour})
	e, _ = e.Claim(start, ask(t2))
	if e.BodySHA256 != sum1 || e.Attempts != 1 {
		t.Errorf("first claim after a voided token: %+v", e)
	}
}

func TestCheck(t *testing.T) {
	for name, err := range map[string]error{
		"claim, no key":           Claim{Lease: time.Second, Keep: time.Second}.Check(),
		"claim, no lease":         Claim{Key: "k", Keep: time.Second}.Check(),
		"claim, short lease":      Claim{Key: "k", Lease: time.Millisecond - 1, Keep: time.Second}.Check(),
		"claim, negative lease":   Claim{Key: "k", Lease: math.MinInt64, Keep: time.Second}.Check(),
		"claim, keep under lease": Claim{Key: "k", Lease: time.Second, Keep: time.Second - 1}.Check(),
		"renewal, no key":         Renewal{Lease: time.Second, Keep: time.Second}.Check(),
		"renewal, no lease":       Renewal{Key: "k"}.Check(),
		"completion, no key":      Completion{TTL: time.Second}.Check(),
		"completion, no ttl":      Completion{Key: "k"}.Check(),
		"completion, status":      Completion{Key: "k", TTL: time.Second, Status: -1}.Check(),
		"release, no key":         Release{Keep: time.Second}.Check(),
		"release, no keep":        Release{Key: "k"}.Check(),
		"release, status":         Release{Key: "k", Keep: time.Second, Status: 1000}.Check(),
		"get, long key":           CheckKey(string(make([]byte, MaxKey+1))),
		"get, no key":             CheckKey(""),
		"cursor of somebody else": func() error { _, err := DecodeCursor("!"); return err }(),
	} {
		if !errors.Is(err, ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"claim":      Claim{Key: "k", Lease: time.Millisecond, Keep: time.Millisecond}.Check(),
		"renewal":    Renewal{Key: "k", Lease: time.Millisecond, Keep: time.Millisecond}.Check(),
		"completion": Completion{Key: "k", TTL: time.Millisecond, Status: 204}.Check(),
		"release":    Release{Key: "k", Keep: time.Millisecond}.Check(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysRoundTrip(t *testing.T) {
	k := Key{Environment: "", Provider: "acme", Scope: EncodePart("h/a:b"), EventID: EncodePart("ä 1") + ":" + EncodePart("%")}
	if got, ok := SplitKey(k.String()); !ok || got != k {
		t.Errorf("%q became %+v", k.String(), got)
	}
	if _, ok := SplitKey("a:b:c"); ok {
		t.Error("three parts passed for a key")
	}
	if got, err := DecodeCursor(EncodeCursor("a:\x00ä")); err != nil || got != "a:\x00ä" {
		t.Errorf("cursor became %q, %v", got, err)
	}
}
