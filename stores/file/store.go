package file

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

const (
	stripeCount = 64
	// lockTimeout is how long opening waits for another process to let go of the file.
	lockTimeout = time.Second
	// maxLazy bounds the duplicates that wait in memory to be counted; more are answered without being counted.
	maxLazy = 10_000
)

var (
	recordBucket = []byte("webhook_dedup:" + claim.SchemeVersion + ":records")
	expiryBucket = []byte("webhook_dedup:" + claim.SchemeVersion + ":expiry")
)

// thisProcess marks the claims of this process. It outlives a store: a file that is closed and opened again by a reload
// still has this process's runs in flight.
var thisProcess = func() (o owner) {
	rand.Read(o[:])
	return o
}()

// options are the parts that tests replace.
type options struct {
	log    *zap.Logger
	now    func() time.Time
	owner  owner
	update func(db *bbolt.DB, fn func(*bbolt.Tx) error) error
}

// store decides in memory and writes behind. What is not yet on disk lies in the hot entries of a stripe, which hide the
// file's version; everything else is read from the file. One goroutine, the committer, writes all that has gathered in
// one transaction, while the next lot gathers.
type store struct {
	options
	path    string
	db      *bbolt.DB
	seed    maphash.Seed
	stripes [stripeCount]stripe

	// mu comes after a stripe's lock, never before.
	mu sync.Mutex
	// dirty are the hot entries that the next commit writes, lazy those of which only the duplicates have changed.
	dirty, lazy map[string]*hot
	// next is the commit for which the dirty entries wait.
	next *commit
	// broken is why the last commit failed.
	broken error

	kick    chan struct{}
	stop    chan struct{}
	stopped chan error
}

type stripe struct {
	mu  sync.Mutex
	hot map[string]*hot
}

// hot is an entry that is newer than the file's. Its stripe's lock guards it.
type hot struct {
	entry claim.Entry
	// pending is the commit that makes the entry durable, nil if it is except for its duplicates.
	pending *commit
	lazy    bool
}

// commit is one transaction, past or to come.
type commit struct {
	done chan struct{}
	err  error
}

func newCommit() *commit { return &commit{done: make(chan struct{})} }

func open(path string, o options) (*store, error) {
	if o.log == nil {
		o.log = zap.NewNop()
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.owner == (owner{}) {
		o.owner = thisProcess
	}
	if o.update == nil {
		o.update = (*bbolt.DB).Update
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("the event file %q is used by another process; several processes need a store that they share, such as redis", path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the event file %q: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{recordBucket, expiryBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the event file %q: %w", path, err), db.Close())
	}
	s := &store{
		options: o,
		path:    path,
		db:      db,
		seed:    maphash.MakeSeed(),
		dirty:   map[string]*hot{},
		lazy:    map[string]*hot{},
		next:    newCommit(),
		kick:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan error, 1),
	}
	for i := range s.stripes {
		s.stripes[i].hot = map[string]*hot{}
	}
	go func() { s.stopped <- s.run() }()
	return s, nil
}

// effect is what a step does to an entry.
type effect int

const (
	unchanged effect = iota
	// counted: only the number of duplicates has changed. It is written at leisure.
	counted
	// changed: it is written with the next commit.
	changed
)

// step looks the entry of key up, lets decide change it, and returns the record together with the commit that makes it
// durable, which is nil if it is. An error of decide changes nothing.
func (s *store) step(key string, decide func(time.Time, claim.Entry) (claim.Entry, effect, error)) (claim.Record, *commit, error) {
	st := s.stripe(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.hot[key]
	var e claim.Entry
	if h != nil {
		e = h.entry
	} else {
		var err error
		if e, err = s.read(key); err != nil {
			return claim.Record{}, nil, err
		}
	}
	now := s.now()
	e, what, err := decide(now, e.At(now))
	if what != unchanged && err == nil {
		h = s.touch(st, key, h, e, what)
	}
	var pending *commit
	if h != nil {
		pending = h.pending
	}
	r := e.Record(key, now)
	r.Response = bytes.Clone(r.Response)
	return r, pending, err
}

// touch replaces the entry of key and tells the committer.
func (s *store) touch(st *stripe, key string, h *hot, e claim.Entry, what effect) *hot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what == counted && len(s.lazy) >= maxLazy {
		return h
	}
	if h == nil {
		h = new(hot)
		st.hot[key] = h
	}
	h.entry = e
	if what == counted {
		h.lazy = true
		s.lazy[key] = h
		return h
	}
	h.pending = s.next
	s.dirty[key] = h
	select {
	case s.kick <- struct{}{}:
	default:
	}
	return h
}

func (s *store) stripe(key string) *stripe {
	return &s.stripes[maphash.String(s.seed, key)%stripeCount]
}

// read returns the file's version of an entry.
func (s *store) read(key string) (e claim.Entry, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(recordBucket).Get([]byte(key)); b != nil {
			e, err = s.decode([]byte(key), b)
		}
		return err
	})
	return e, err
}

func (s *store) decode(key, b []byte) (claim.Entry, error) {
	e, by, err := decode(b)
	if err != nil {
		return e, fmt.Errorf("reading the record of %q in %q: %w", key, s.path, err)
	}
	if by != s.owner {
		e.Deadline = 0
	}
	return e, nil
}

// wait returns when c is over.
func (s *store) wait(ctx context.Context, c *commit) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the event file: %w", ctx.Err())
	}
}

// writable is why nothing can be written at the moment.
func (s *store) writable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Claim implements [claim.Store]. A granted claim is written behind: were it lost in a crash, nobody would hold it then.
func (s *store) Claim(ctx context.Context, c claim.Claim) (outcome claim.ClaimOutcome, _ claim.Record, err error) {
	if err := refused(ctx, c.Check()); err != nil {
		return 0, claim.Record{}, err
	}
	r, pending, err := s.step(c.Key, func(now time.Time, e claim.Entry) (claim.Entry, effect, error) {
		was := e.Deadline
		e, outcome = e.Claim(now, c)
		switch {
		case outcome == claim.Granted || outcome == claim.GrantedAgain:
			return e, changed, s.writable()
		case outcome == claim.Duplicate:
			return e, counted, nil
		case e.Deadline != was:
			return e, changed, nil
		}
		return e, unchanged, nil
	})
	// The caller passes processed on as a success, so it must be durable. A claim that must outlive a crash would wait
	// here as well.
	if err == nil && r.State == claim.Processed {
		err = s.wait(ctx, pending)
	}
	if err != nil {
		return 0, claim.Record{}, err
	}
	return outcome, r, nil
}

// Renew implements [claim.Store].
func (s *store) Renew(ctx context.Context, r claim.Renewal) error {
	if err := refused(ctx, r.Check()); err != nil {
		return err
	}
	_, _, err := s.step(r.Key, func(now time.Time, e claim.Entry) (claim.Entry, effect, error) {
		e, err := e.Renew(now, r)
		return e, changed, err
	})
	return err
}

// Complete implements [claim.Store].
func (s *store) Complete(ctx context.Context, c claim.Completion) (outcome claim.CompleteOutcome, err error) {
	if err := refused(ctx, c.Check()); err != nil {
		return 0, err
	}
	c.Response = bytes.Clone(c.Response)
	_, pending, err := s.step(c.Key, func(now time.Time, e claim.Entry) (claim.Entry, effect, error) {
		e, outcome, err = e.Complete(now, c)
		if outcome == claim.AlreadyWritten {
			return e, unchanged, nil
		}
		return e, changed, err
	})
	if err == nil {
		err = s.wait(ctx, pending)
	}
	if err != nil {
		return 0, err
	}
	return outcome, nil
}

// Release implements [claim.Store].
func (s *store) Release(ctx context.Context, r claim.Release) (outcome claim.ReleaseOutcome, err error) {
	if err := refused(ctx, r.Check()); err != nil {
		return 0, err
	}
	_, _, err = s.step(r.Key, func(now time.Time, e claim.Entry) (claim.Entry, effect, error) {
		e, outcome, err = e.Release(now, r)
		if outcome == claim.AlreadyReleased {
			return e, unchanged, nil
		}
		return e, changed, err
	})
	return outcome, err
}

// Get implements [claim.Store].
func (s *store) Get(ctx context.Context, key string) (claim.Record, error) {
	if err := refused(ctx, claim.CheckKey(key)); err != nil {
		return claim.Record{}, err
	}
	r, pending, err := s.step(key, func(_ time.Time, e claim.Entry) (claim.Entry, effect, error) {
		return e, unchanged, nil
	})
	if err == nil && r.State == claim.Processed {
		err = s.wait(ctx, pending)
	}
	if err == nil && r.State == 0 {
		err = claim.ErrNotFound
	}
	if err != nil {
		return claim.Record{}, err
	}
	return r, nil
}

// Forget implements [claim.Store]. It removes a corrupt record as well.
func (s *store) Forget(ctx context.Context, key string) (bool, error) {
	if err := refused(ctx, claim.CheckKey(key)); err != nil {
		return false, err
	}
	found := false
	forget := func(_ time.Time, e claim.Entry) (claim.Entry, effect, error) {
		if found = e.State != 0; !found {
			return e, unchanged, nil
		}
		return claim.Entry{}, changed, nil
	}
	_, pending, err := s.step(key, forget)
	if errors.Is(err, errCorrupt) {
		pending, err = s.forgetCorrupt(key), nil
		found = true
	}
	if err == nil {
		err = s.wait(ctx, pending)
	}
	return found && err == nil, err
}

func (s *store) forgetCorrupt(key string) *commit {
	st := s.stripe(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	return s.touch(st, key, st.hot[key], claim.Entry{}, changed).pending
}

// Ping implements [claim.Store].
func (s *store) Ping(ctx context.Context) error { return refused(ctx, s.writable()) }

// Close implements [claim.Store]. It returns when everything is on disk, or with the reason why it is not.
func (s *store) Close() error {
	close(s.stop)
	return errors.Join(<-s.stopped, s.db.Close())
}

// refused is why a call is not carried out at all: wrong arguments, or a context that is done.
func refused(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return ctx.Err()
}

var _ claim.Store = (*store)(nil)
