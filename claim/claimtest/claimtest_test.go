package claimtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// reference is a right store, with places where a test can break it.
type reference struct {
	mu      sync.Mutex
	now     time.Time
	entries map[string]claim.Entry
	flaws   flaws
}

// flaws are the ways in which a store can be wrong. A nil function is right.
type flaws struct {
	claim      func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome)
	renew      func(e claim.Entry, now time.Time, r claim.Renewal) (claim.Entry, error)
	complete   func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error)
	release    func(e claim.Entry, now time.Time, r claim.Release) (claim.Entry, claim.ReleaseOutcome, error)
	list       func(q claim.Query) claim.Query
	unlocked   bool // claims look first and write later
	anyContext bool
	anything   bool // arguments are not checked
}

func newReference(f flaws) *reference {
	if f.claim == nil {
		f.claim = claim.Entry.Claim
	}
	if f.renew == nil {
		f.renew = claim.Entry.Renew
	}
	if f.complete == nil {
		f.complete = claim.Entry.Complete
	}
	if f.release == nil {
		f.release = claim.Entry.Release
	}
	return &reference{now: time.UnixMilli(1_800_000_000_000), entries: map[string]claim.Entry{}, flaws: f}
}

func (s *reference) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *reference) check(ctx context.Context, err error) error {
	if s.flaws.anything {
		err = nil
	}
	if err == nil && !s.flaws.anyContext {
		err = ctx.Err()
	}
	return err
}

func (s *reference) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	if err := s.check(ctx, c.Check()); err != nil {
		return 0, claim.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[c.Key].At(s.now)
	if s.flaws.unlocked {
		s.mu.Unlock()
		runtime.Gosched()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	e, outcome := s.flaws.claim(e, s.now, c)
	s.entries[c.Key] = e
	return outcome, e.Record(c.Key, s.now), nil
}

func (s *reference) Renew(ctx context.Context, r claim.Renewal) error {
	if err := s.check(ctx, r.Check()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.flaws.renew(s.entries[r.Key].At(s.now), s.now, r)
	s.entries[r.Key] = e
	return err
}

func (s *reference) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	if err := s.check(ctx, c.Check()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, outcome, err := s.flaws.complete(s.entries[c.Key].At(s.now), s.now, c)
	s.entries[c.Key] = e
	return outcome, err
}

func (s *reference) Release(ctx context.Context, r claim.Release) (claim.ReleaseOutcome, error) {
	if err := s.check(ctx, r.Check()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, outcome, err := s.flaws.release(s.entries[r.Key].At(s.now), s.now, r)
	s.entries[r.Key] = e
	return outcome, err
}

func (s *reference) Get(ctx context.Context, key string) (claim.Record, error) {
	if err := s.check(ctx, claim.CheckKey(key)); err != nil {
		return claim.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.entries[key].Record(key, s.now)
	if r.State == 0 {
		return r, claim.ErrNotFound
	}
	return r, nil
}

func (s *reference) Forget(ctx context.Context, key string) (bool, error) {
	if err := s.check(ctx, claim.CheckKey(key)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.entries[key].At(s.now).State != 0
	delete(s.entries, key)
	return found, nil
}

func (s *reference) List(ctx context.Context, q claim.Query) (claim.Page, error) {
	after, err := claim.DecodeCursor(q.Cursor)
	if err := s.check(ctx, err); err != nil {
		return claim.Page{}, err
	}
	if s.flaws.list != nil {
		q = s.flaws.list(q)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key, e := range s.entries {
		if r := e.Record(key, s.now); r.State != 0 && key > after && q.Matches(r) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	limit := q.Bounded().Limit
	if s.flaws.list != nil {
		limit = q.Limit
	}
	var p claim.Page
	for _, key := range keys {
		if len(p.Records) == limit {
			p.Cursor = claim.EncodeCursor(p.Records[limit-1].Key)
			break
		}
		p.Records = append(p.Records, s.entries[key].Record(key, s.now))
	}
	return p, nil
}

func (s *reference) Stats(ctx context.Context) (claim.Stats, error) {
	var stats claim.Stats
	if err := s.check(ctx, nil); err != nil {
		return stats, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if r := e.Record(key, s.now); r.State != 0 {
			stats.Count(r)
		}
	}
	return stats, nil
}

func (s *reference) Ping(ctx context.Context) error { return s.check(ctx, nil) }

func (s *reference) Close() error { return nil }

func TestReferencePasses(t *testing.T) {
	s := newReference(flaws{})
	Run(t, Harness{Open: func(*testing.T) claim.Store { return s }, Advance: s.advance})
	if n := len(cases()); n < 40 {
		t.Errorf("%d cases, at least 40 are promised", n)
	}
	var names []string
	for _, c := range cases() {
		if slices.Contains(names, c.name) {
			t.Errorf("two cases are called %q", c.name)
		}
		names = append(names, c.name)
	}
}

// witness takes the place of a *testing.T and remembers what the suite said.
type witness struct {
	mu   sync.Mutex
	said []string
}

func (w *witness) Helper() {}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}

// failing runs the suite against a store with these flaws and returns the names of the cases that fail. The cases with
// random operations are left out: the named ones must do.
func failing(f flaws) (names []string) {
	for _, c := range cases() {
		if strings.HasPrefix(c.name, "random operations") {
			continue
		}
		s, w := newReference(f), &witness{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			e := newEnv(w, s, s.advance)
			e.patience = 2 * time.Second
			c.run(e)
		}()
		<-done
		if len(w.said) > 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// TestSuiteCatches breaks the store on purpose. Each flaw must be caught by the case that was written for it.
func TestSuiteCatches(t *testing.T) {
	for _, c := range []struct {
		flaw   string
		flaws  flaws
		caught string
	}{
		{"no fencing of complete", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				if e.State == claim.Processing {
					e.Token = c.Token
				}
				return e.Complete(now, c)
			},
		}, "late complete after a takeover is lost"},
		{"no fencing of release", flaws{
			release: func(e claim.Entry, now time.Time, r claim.Release) (claim.Entry, claim.ReleaseOutcome, error) {
				if e.State == claim.Processing {
					e.Token = r.Token
				}
				return e.Release(now, r)
			},
		}, "background release of a refused waiter frees nobody's claim"},
		{"no fencing of renew", flaws{
			renew: func(e claim.Entry, now time.Time, r claim.Renewal) (claim.Entry, error) {
				if e.State == claim.Processing {
					e.Token = r.Token
				}
				return e.Renew(now, r)
			},
		}, "late renew after a takeover is lost"},
		{"plain DEL", flaws{
			release: func(e claim.Entry, _ time.Time, _ claim.Release) (claim.Entry, claim.ReleaseOutcome, error) {
				return claim.Entry{}, claim.Released, nil
			},
		}, "release by a stranger does not undo processed"},
		{"early 200 in flight", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				e, o := e.Claim(now, c)
				if o == claim.InFlight {
					o = claim.Duplicate
				}
				return e, o
			},
		}, "in flight is never told to be processed"},
		{"one token for all", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				if e.State == claim.Processing {
					c.Token = e.Token
				}
				return e.Claim(now, c)
			},
		}, "another delivery is never taken for a resend"},
		{"release while the same claim is being resent", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				if e.State == claim.Failed {
					e.Token = claim.NewToken()
				}
				return e.Claim(now, c)
			},
		}, "release racing a resent claim frees nobody else"},
		{"same answer always", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				if e.State == claim.Processed && e.Token == c.Token {
					e.State = claim.Processing
				}
				return e.Claim(now, c)
			},
		}, "ghost of the claim does not bring processing back"},
		{"resent claim does not restart the lease", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				if e.State == claim.Processing && e.Token == c.Token {
					return e, claim.GrantedAgain
				}
				return e.Claim(now, c)
			},
		}, "resent claim restarts the lease"},
		{"expired untaken lease counts as lost", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				if e.State == claim.Processing && e.Deadline <= now.UnixMilli() {
					return e, 0, claim.ErrLeaseLost
				}
				return e.Complete(now, c)
			},
		}, "complete of an expired untaken lease"},
		{"expired untaken lease cannot be renewed", flaws{
			renew: func(e claim.Entry, now time.Time, r claim.Renewal) (claim.Entry, error) {
				if e.State == claim.Processing && e.Deadline <= now.UnixMilli() {
					return e, claim.ErrLeaseLost
				}
				return e.Renew(now, r)
			},
		}, "renew of an expired untaken lease"},
		{"no lease", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				if e.State == claim.Processing && e.Token != c.Token {
					return e, claim.InFlight
				}
				return e.Claim(now, c)
			},
		}, "expired lease is taken over"},
		{"release that finds nothing leaves nothing", flaws{
			release: func(e claim.Entry, now time.Time, r claim.Release) (claim.Entry, claim.ReleaseOutcome, error) {
				if e.State == 0 {
					return e, claim.Voided, nil
				}
				return e.Release(now, r)
			},
		}, "release applied before its claim"},
		{"renew revives failed", flaws{
			renew: func(e claim.Entry, now time.Time, r claim.Renewal) (claim.Entry, error) {
				if e.State == claim.Failed && e.Token == r.Token {
					e.State = claim.Processing
				}
				return e.Renew(now, r)
			},
		}, "renew does not revive failed"},
		{"release undoes its own processed", flaws{
			release: func(e claim.Entry, now time.Time, r claim.Release) (claim.Entry, claim.ReleaseOutcome, error) {
				if e.State == claim.Processed && e.Token == r.Token {
					e.State = claim.Processing
				}
				return e.Release(now, r)
			},
		}, "release does not undo its own processed"},
		{"completion of a lost record is thrown away", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				if e.State == 0 {
					return e, 0, claim.ErrLeaseLost
				}
				return e.Complete(now, c)
			},
		}, "complete after the retention is over is never thrown away"},
		{"completion overwrites another's", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				if e.State == claim.Processed {
					e.Token = c.Token
				}
				return e.Complete(now, c)
			},
		}, "complete by another token tells whose completion stands"},
		{"history is lost on takeover", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				e, o := e.Claim(now, c)
				if o == claim.Granted {
					e.Attempts, e.FirstSeen = 1, now.UnixMilli()
				}
				return e, o
			},
		}, "expired lease is taken over"},
		{"processed has no end", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				c.TTL = 1000 * long
				return e.Complete(now, c)
			},
		}, "processed ends with its TTL"},
		{"failed has no end", flaws{
			release: func(e claim.Entry, now time.Time, r claim.Release) (claim.Entry, claim.ReleaseOutcome, error) {
				r.Keep = 1000 * long
				return e.Release(now, r)
			},
		}, "keep ends a voided token"},
		{"processed keeps the retention of its claim", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				old := e.Expires
				e, o, err := e.Complete(now, c)
				if o == claim.Written {
					e.Expires = old
				}
				return e, o, err
			},
		}, "processed outlives the lease and the keep of its claim"},
		{"duplicates are not counted", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				n := e.Duplicates
				e, o := e.Claim(now, c)
				e.Duplicates = n
				return e, o
			},
		}, "duplicates are counted and change nothing else"},
		{"last digest instead of the first", flaws{
			claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
				e, o := e.Claim(now, c)
				if o == claim.Granted {
					e.BodySHA256 = c.BodySHA256
				}
				return e, o
			},
		}, "digest of the first delivery is kept"},
		{"responses end at the first NUL", flaws{
			complete: func(e claim.Entry, now time.Time, c claim.Completion) (claim.Entry, claim.CompleteOutcome, error) {
				s, _, _ := strings.Cut(string(c.Response), "\x00")
				c.Response = []byte(s)
				return e.Complete(now, c)
			},
		}, "responses of any bytes"},
		{"look first, write later", flaws{unlocked: true}, "64 claims at once, one granted"},
		{"context is ignored", flaws{anyContext: true}, "cancelled context is an error at once"},
		{"arguments are not checked", flaws{anything: true}, "arguments out of bounds change nothing"},
		{"limit is ignored", flaws{list: func(q claim.Query) claim.Query { q.Limit = 1 << 30; return q }}, "list pages through several hundred records"},
		{"state filter is ignored", flaws{list: func(q claim.Query) claim.Query { q.State = 0; q.Limit = q.Bounded().Limit; return q }}, "list filters"},
	} {
		t.Run(c.flaw, func(t *testing.T) {
			t.Parallel()
			names := failing(c.flaws)
			if !slices.Contains(names, c.caught) {
				t.Errorf("%q passed; failing were %q", c.caught, names)
			}
		})
	}
}

// TestModelCatches shows that the random cases alone find a flaw, too.
func TestModelCatches(t *testing.T) {
	s, w := newReference(flaws{claim: func(e claim.Entry, now time.Time, c claim.Claim) (claim.Entry, claim.ClaimOutcome) {
		if e.State == claim.Failed && e.Token == c.Token {
			e.Token = claim.Token{}
		}
		return e.Claim(now, c)
	}}), &witness{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		newEnv(w, s, s.advance).random(1)
	}()
	<-done
	if len(w.said) == 0 {
		t.Error("a released token that is granted again went unnoticed")
	}
}
