package claim

import "time"

// Entry is a record as a store that decides in its own process keeps it: with absolute times, in Unix milliseconds of
// the store's clock. The zero Entry is "no record". Its methods are the state machine of the protocol; they touch no
// clock and no storage, so that every such store decides alike. Arguments must have passed their Check.
type Entry struct {
	State State
	Token Token
	// Lease is the length of the holder's lease in milliseconds, Deadline is when it runs out.
	Lease, Deadline int64
	// Expires is when the record ceases to be.
	Expires            int64
	FirstSeen, Updated int64
	Attempts           int
	Duplicates         int64
	EventType          string
	Status             int
	BodySHA256         [32]byte
	OriginalID         string
	Response           []byte
}

// At returns e as it is at the time now: the zero Entry once its retention is over.
func (e Entry) At(now time.Time) Entry {
	if e.Expires <= now.UnixMilli() {
		return Entry{}
	}
	return e
}

// remaining is what is left of the lease. It is never more than one lease: where it would be, the clock was set back.
func (e Entry) remaining(now int64) int64 {
	return max(0, min(e.Deadline-now, e.Lease))
}

// Record returns e as the answer of a store.
func (e Entry) Record(key string, now time.Time) Record {
	e = e.At(now)
	if e.State == 0 {
		return Record{Key: key}
	}
	r := Record{
		Key:        key,
		State:      e.State,
		Token:      e.Token,
		FirstSeen:  time.UnixMilli(e.FirstSeen),
		Updated:    time.UnixMilli(e.Updated),
		Attempts:   e.Attempts,
		Duplicates: e.Duplicates,
		EventType:  e.EventType,
		Status:     e.Status,
		BodySHA256: e.BodySHA256,
		OriginalID: e.OriginalID,
		Response:   e.Response,
	}
	if e.State == Processing {
		r.Lease = time.Duration(e.Lease) * time.Millisecond
		r.Remaining = time.Duration(e.remaining(now.UnixMilli())) * time.Millisecond
	}
	return r
}

// Claim returns the entry after a Claim, and the answer. Only Granted, GrantedAgain and Duplicate change the entry, and
// InFlight where the clock was set back: what is left of the lease is then cut to one lease for good.
func (e Entry) Claim(now time.Time, c Claim) (Entry, ClaimOutcome) {
	e = e.At(now)
	ms := now.UnixMilli()
	outcome := Granted
	switch {
	case e.State == Processed && e.Token == c.Token:
		return e, ProcessedBySelf
	case e.State == Processed:
		e.Duplicates++
		return e, Duplicate
	case e.State == Failed && e.Token == c.Token:
		return e, Refused
	case e.State == Processing && e.Token == c.Token:
		outcome = GrantedAgain
	case e.State == Processing && e.remaining(ms) > 0:
		e.Deadline = ms + e.remaining(ms)
		return e, InFlight
	}
	if e.State == 0 {
		e.FirstSeen = ms
	}
	if outcome == Granted {
		e.Attempts++
	}
	if e.BodySHA256 == [32]byte{} {
		e.BodySHA256 = c.BodySHA256
	}
	if e.OriginalID == "" {
		e.OriginalID = c.OriginalID
	}
	if c.EventType != "" {
		e.EventType = c.EventType
	}
	e.State, e.Token = Processing, c.Token
	e.hold(ms, c.Lease, c.Keep)
	return e, outcome
}

// hold restarts the lease and the retention that goes with it.
func (e *Entry) hold(ms int64, lease, keep time.Duration) {
	e.Lease = lease.Milliseconds()
	e.Deadline = ms + e.Lease
	e.Expires = ms + keep.Milliseconds()
	e.Updated = ms
}

// Renew returns the entry after a Renew. On an error it is unchanged.
func (e Entry) Renew(now time.Time, r Renewal) (Entry, error) {
	e = e.At(now)
	switch {
	case e.State == Processing && e.Token == r.Token:
		e.hold(now.UnixMilli(), r.Lease, r.Keep)
		return e, nil
	case e.State == Processed && e.Token == r.Token:
		return e, ErrProcessedBySelf
	}
	return e, ErrLeaseLost
}

// Complete returns the entry after a Complete, and the answer. Only Written and WrittenAnew change the entry.
func (e Entry) Complete(now time.Time, c Completion) (Entry, CompleteOutcome, error) {
	e = e.At(now)
	ms := now.UnixMilli()
	outcome := Written
	switch {
	case e.State == Processed && e.Token == c.Token:
		return e, AlreadyWritten, nil
	case e.State == Processed:
		return e, 0, ErrProcessedByOther
	case e.State == 0:
		outcome = WrittenAnew
		e.FirstSeen, e.Attempts = ms, 1
	case e.State != Processing || e.Token != c.Token:
		return e, 0, ErrLeaseLost
	}
	if e.BodySHA256 == [32]byte{} {
		e.BodySHA256 = c.BodySHA256
	}
	if e.OriginalID == "" {
		e.OriginalID = c.OriginalID
	}
	if c.EventType != "" {
		e.EventType = c.EventType
	}
	e.State, e.Token, e.Status = Processed, c.Token, c.Status
	e.Response = nil
	if len(c.Response) > 0 {
		e.Response = c.Response
	}
	e.Lease, e.Deadline = 0, 0
	e.Expires, e.Updated = ms+c.TTL.Milliseconds(), ms
	return e, outcome, nil
}

// Release returns the entry after a Release, and the answer. Only Released and Voided change the entry.
func (e Entry) Release(now time.Time, r Release) (Entry, ReleaseOutcome, error) {
	e = e.At(now)
	ms := now.UnixMilli()
	outcome := Released
	switch {
	case e.State == 0:
		outcome = Voided
		e.FirstSeen = ms
	case e.Token != r.Token:
		return e, 0, ErrLeaseLost
	case e.State == Processed:
		return e, 0, ErrProcessedBySelf
	case e.State == Failed:
		return e, AlreadyReleased, nil
	}
	e.State, e.Token, e.Status = Failed, r.Token, r.Status
	e.Lease, e.Deadline = 0, 0
	e.Expires, e.Updated = ms+r.Keep.Milliseconds(), ms
	return e, outcome, nil
}
