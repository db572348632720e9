// Package claim is the protocol by which deliveries of one event agree, through a shared store, which of them may
// process it. It knows no HTTP and no Caddy; every store of this project implements [Store] and is held to the contract
// in package claimtest.
//
// A record of a key is absent, processing (under a lease, named by a fencing token), processed (final until its TTL) or
// failed (open to the next claim). Time is the store's: callers send durations, never instants.
package claim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Token is a fencing token: 128 random bits that name one acquisition of one key by one delivery. After the first
// Complete or Release with a token, no Claim or Renew is sent with it.
type Token [16]byte

// NewToken returns a fresh random token.
func NewToken() Token {
	var t Token
	rand.Read(t[:]) // never fails: it ends the program instead
	return t
}

// State is what a store knows of a key.
type State uint8

// The states of a record. The zero State means "no record" in answers and "any state" in a [Query].
const (
	Processing State = iota + 1
	Processed
	Failed
)

// String returns the word that logs, the admin API and the command line use for s.
func (s State) String() string {
	switch s {
	case Processing:
		return "processing"
	case Processed:
		return "processed"
	case Failed:
		return "failed"
	}
	return "absent"
}

// ParseState is the inverse of [State.String] for the states that a record can have.
func ParseState(word string) (State, error) {
	for _, s := range []State{Processing, Processed, Failed} {
		if s.String() == word {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown state %q; allowed are processing, processed, failed", word)
}

// Record is what a store keeps of a key.
type Record struct {
	// Key is the scoped key, as [Key.String] makes it.
	Key string
	// State is zero where there is no record.
	State State
	// Token is the acquisition that holds, completed or released the key.
	Token Token
	// Lease is the length of the holder's lease, zero unless State is Processing.
	Lease time.Duration
	// Remaining is what is left of the lease by the store's clock, never more than Lease, zero once it has run out.
	Remaining time.Duration
	// FirstSeen and Updated are the store's times of the first claim and of the last change, to the millisecond.
	FirstSeen, Updated time.Time
	// Attempts counts granted acquisitions: 1 is the first run.
	Attempts int
	// Duplicates counts deliveries answered from the processed record, best effort under contention.
	Duplicates int64
	// EventType is the provider's name for the kind of event; may be empty.
	EventType string
	// Status is the application's last HTTP status, 0 where there was none.
	Status int
	// BodySHA256 is the digest of the first delivery's body.
	BodySHA256 [32]byte
	// OriginalID is the beginning of an event ID that was too long to stand in the key; empty for every other.
	OriginalID string
	// Response is the stored response of the acknowledged run, nil where none was kept.
	Response []byte
}

// Claim asks for the right to process a key.
type Claim struct {
	Key   string
	Token Token
	// Lease is how long the claim holds without a renewal; at least a millisecond.
	Lease time.Duration
	// Keep is how long a record that is not processed is remembered; at least Lease.
	Keep       time.Duration
	EventType  string
	BodySHA256 [32]byte
	OriginalID string
}

// Renewal asks for a fresh lease on a key that the token holds. Lease and Keep are as in [Claim].
type Renewal struct {
	Key         string
	Token       Token
	Lease, Keep time.Duration
}

// Completion records that the application has acknowledged the event.
type Completion struct {
	Key   string
	Token Token
	// TTL is how long the processed record is remembered; at least a millisecond.
	TTL time.Duration
	// Status is the application's HTTP status.
	Status int
	// Response is kept with the record; empty means none. Callers must not change it afterwards.
	Response   []byte
	EventType  string
	BodySHA256 [32]byte
	OriginalID string
}

// Release gives a claim back, because the application did not acknowledge the event or because the outcome of the
// Claim is unknown.
type Release struct {
	Key   string
	Token Token
	// Keep is how long the failed record is remembered; at least a millisecond.
	Keep   time.Duration
	Status int
}

// ClaimOutcome is a store's answer to a Claim.
type ClaimOutcome uint8

// The answers to a Claim.
const (
	// Granted: the token now holds the claim.
	Granted ClaimOutcome = iota + 1
	// GrantedAgain: the token held it already (its own Claim was resent); the lease was restarted.
	GrantedAgain
	// InFlight: another token holds a live lease; Record.Remaining says how much of it is left.
	InFlight
	// Duplicate: the key is processed. The duplicate was counted.
	Duplicate
	// ProcessedBySelf: the key is processed, by this very token. Nothing was changed or counted.
	ProcessedBySelf
	// Refused: this token was released before; it can never be granted again.
	Refused
)

// String names the outcome for logs and test failures.
func (o ClaimOutcome) String() string {
	names := [...]string{"unknown", "granted", "granted again", "in flight", "duplicate", "processed by this token", "refused"}
	if int(o) < len(names) {
		return names[o]
	}
	return names[0]
}

// CompleteOutcome is a store's answer to a Complete that took effect, now or earlier.
type CompleteOutcome uint8

// The answers to a Complete. Where it had no effect the answer is [ErrLeaseLost] or [ErrProcessedByOther].
const (
	// Written: the holder's claim became processed.
	Written CompleteOutcome = iota + 1
	// AlreadyWritten: this token had completed the key before.
	AlreadyWritten
	// WrittenAnew: there was no record any more (lost, expired or forgotten); processed was written all the same.
	WrittenAnew
)

// ReleaseOutcome is a store's answer to a Release that took effect, now or earlier.
type ReleaseOutcome uint8

// The answers to a Release. Where it had no effect the answer is [ErrLeaseLost] or [ErrProcessedBySelf].
const (
	// Released: the claim was given back; the next one is granted.
	Released ReleaseOutcome = iota + 1
	// AlreadyReleased: this token had released the key before.
	AlreadyReleased
	// Voided: there was no record; a failed one naming the token was left, so that a late Claim with it is refused.
	Voided
)

// Errors that are answers of the protocol, not failures of the store. Test for them with errors.Is.
var (
	// ErrLeaseLost: the token does not hold the claim (any more). Nothing was changed.
	ErrLeaseLost = errors.New("lease lost: the claim is held by another delivery or was released")
	// ErrProcessedByOther is an ErrLeaseLost whose key has been completed with another token.
	ErrProcessedByOther = fmt.Errorf("%w; another delivery's completion stands", ErrLeaseLost)
	// ErrProcessedBySelf: this token has completed the key; there is nothing to renew or release. Nothing was changed.
	ErrProcessedBySelf = errors.New("the key was already processed with this token")
	// ErrNotFound: there is no record of the key.
	ErrNotFound = errors.New("no record of this key")
)

// Store keeps the records. Each method is one atomic step at the store and, where the store is remote, one round trip;
// it returns soon after ctx is done, in which case the step may or may not have been taken. Any error other than those
// of this package means that the outcome is unknown. A Store resends nothing by itself. Methods are safe for concurrent
// use; arguments that break their stated bounds are errors and change nothing.
type Store interface {
	// Claim asks for the key; the answer's record is as it stands after the step.
	Claim(ctx context.Context, c Claim) (ClaimOutcome, Record, error)
	// Renew restarts the holder's lease, also one that has run out and was not taken over. Errors: ErrLeaseLost,
	// ErrProcessedBySelf.
	Renew(ctx context.Context, r Renewal) error
	// Complete makes the key processed, also where the holder's lease has run out untaken or no record is left. It is
	// durable, as far as the store is at all, when it returns. Errors: ErrLeaseLost, ErrProcessedByOther.
	Complete(ctx context.Context, c Completion) (CompleteOutcome, error)
	// Release makes the key failed, so that the next Claim is granted. Errors: ErrLeaseLost, ErrProcessedBySelf.
	Release(ctx context.Context, r Release) (ReleaseOutcome, error)
	// Get returns the record without changing it. Error: ErrNotFound.
	Get(ctx context.Context, key string) (Record, error)
	// Forget removes the record whatever its state and reports whether there was one.
	Forget(ctx context.Context, key string) (bool, error)
	// List returns one page of records in no particular order. A record that is there all the while is returned at
	// least once over all pages.
	List(ctx context.Context, q Query) (Page, error)
	// Stats counts the records.
	Stats(ctx context.Context) (Stats, error)
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
	// Close gives the store's resources back. No other method may be running or called afterwards.
	Close() error
}

// Query selects records for [Store.List]. Zero fields select everything.
type Query struct {
	State    State
	Provider string
	// Prefix is a prefix of the whole key.
	Prefix string
	// EventID is the exact event ID, encoded as in the key.
	EventID string
	// Limit bounds the page; 0 means 100, more than 1000 means 1000. A store may return fewer records than Limit, even
	// none, together with a cursor.
	Limit int
	// Cursor continues after an earlier page; empty starts anew.
	Cursor string
}

// Bounded returns q with Limit between 1 and 1000.
func (q Query) Bounded() Query {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	q.Limit = min(q.Limit, 1000)
	return q
}

// Matches reports whether r is selected by q, cursor and limit aside.
func (q Query) Matches(r Record) bool {
	if q.State != 0 && r.State != q.State || len(r.Key) < len(q.Prefix) || r.Key[:len(q.Prefix)] != q.Prefix {
		return false
	}
	if q.Provider == "" && q.EventID == "" {
		return true
	}
	k, ok := SplitKey(r.Key)
	return ok && (q.Provider == "" || k.Provider == q.Provider) && (q.EventID == "" || k.EventID == q.EventID)
}

// Page is one page of a [Store.List].
type Page struct {
	Records []Record
	// Cursor is empty on the last page.
	Cursor string
}

// Stats is a count of the records of a store.
type Stats struct {
	// Counts has the number of records by provider and state.
	Counts map[string]map[State]int64
	// OldestProcessing is the time at which the longest-held claim was last granted or renewed; zero where none is held.
	OldestProcessing time.Time
}

// Count adds r to s.
func (s *Stats) Count(r Record) {
	if s.Counts == nil {
		s.Counts = map[string]map[State]int64{}
	}
	k, _ := SplitKey(r.Key)
	if s.Counts[k.Provider] == nil {
		s.Counts[k.Provider] = map[State]int64{}
	}
	s.Counts[k.Provider][r.State]++
	if r.State == Processing && (s.OldestProcessing.IsZero() || r.Updated.Before(s.OldestProcessing)) {
		s.OldestProcessing = r.Updated
	}
}
