// Package proof holds every store to the claim protocol by two means that need more than the module itself: random
// histories against a reference (rapid), and a check that what many clients of a server saw at the same time can be put
// into one order (porcupine), also while the server is frozen, killed and started again.
package proof

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// record is a record as the specification describes it, with times as durations since some beginning. It is written
// down here anew: the stores' own state machine is what it is to judge.
type record struct {
	state    claim.State
	token    claim.Token
	lease    time.Duration
	leaseEnd time.Duration
	keepEnd  time.Duration

	attempts, duplicates int
	status               int
	eventType            string
	body                 byte
	response             string
}

// reference is a store: what it has, and what time it is.
type reference struct {
	now     time.Duration
	records map[string]record
}

func (m *reference) get(key string) record {
	r := m.records[key]
	if r.keepEnd <= m.now {
		return record{}
	}
	return r
}

func (m *reference) claim(c claim.Claim) (claim.ClaimOutcome, record) {
	r := m.get(c.Key)
	mine := r.token == c.Token
	outcome := claim.Granted
	switch {
	case r.state == claim.Processed && mine:
		return claim.ProcessedBySelf, r
	case r.state == claim.Processed:
		r.duplicates++
		m.records[c.Key] = r
		return claim.Duplicate, r
	case r.state == claim.Failed && mine:
		return claim.Refused, r
	case r.state == claim.Processing && mine:
		outcome = claim.GrantedAgain
	case r.state == claim.Processing && r.leaseEnd > m.now:
		return claim.InFlight, r
	}
	if outcome == claim.Granted {
		r.attempts++
	}
	r.state, r.token = claim.Processing, c.Token
	r.describe(c.EventType, c.BodySHA256[0])
	m.hold(c.Key, r, c.Lease, c.Keep)
	return outcome, m.records[c.Key]
}

func (m *reference) hold(key string, r record, lease, keep time.Duration) {
	r.lease, r.leaseEnd, r.keepEnd = lease, m.now+lease, m.now+keep
	m.records[key] = r
}

// describe takes what a delivery says of its event: the type from the last, the digest from the first.
func (r *record) describe(eventType string, body byte) {
	if eventType != "" {
		r.eventType = eventType
	}
	if r.body == 0 {
		r.body = body
	}
}

func (m *reference) renew(c claim.Renewal) error {
	r := m.get(c.Key)
	switch {
	case r.state == claim.Processing && r.token == c.Token:
		m.hold(c.Key, r, c.Lease, c.Keep)
		return nil
	case r.state == claim.Processed && r.token == c.Token:
		return claim.ErrProcessedBySelf
	}
	return claim.ErrLeaseLost
}

func (m *reference) complete(c claim.Completion) (claim.CompleteOutcome, error) {
	r := m.get(c.Key)
	mine := r.token == c.Token
	outcome := claim.Written
	switch {
	case r.state == 0:
		outcome = claim.WrittenAnew
		r.attempts = 1
	case r.state == claim.Processed && mine:
		return claim.AlreadyWritten, nil
	case r.state == claim.Processed:
		return 0, claim.ErrProcessedByOther
	case r.state == claim.Failed || !mine:
		return 0, claim.ErrLeaseLost
	}
	r.state, r.token, r.status, r.response, r.lease = claim.Processed, c.Token, c.Status, string(c.Response), 0
	r.keepEnd = m.now + c.TTL
	r.describe(c.EventType, c.BodySHA256[0])
	m.records[c.Key] = r
	return outcome, nil
}

func (m *reference) release(c claim.Release) (claim.ReleaseOutcome, error) {
	r := m.get(c.Key)
	mine := r.token == c.Token
	outcome := claim.Released
	switch {
	case r.state == 0:
		outcome = claim.Voided
	case !mine:
		return 0, claim.ErrLeaseLost
	case r.state == claim.Processed:
		return 0, claim.ErrProcessedBySelf
	case r.state == claim.Failed:
		return claim.AlreadyReleased, nil
	}
	r.state, r.token, r.status, r.lease = claim.Failed, c.Token, c.Status, 0
	r.keepEnd = m.now + c.Keep
	m.records[c.Key] = r
	return outcome, nil
}

func (m *reference) forget(key string) bool {
	found := m.get(key).state != 0
	delete(m.records, key)
	return found
}

// differ tells how a store's record is not the reference's, or nothing.
func (m *reference) differ(want record, got claim.Record) string {
	if want.state == 0 {
		want = record{}
	}
	live := want.state == claim.Processing && want.leaseEnd > m.now
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"state", want.state, got.State},
		{"token", want.token, got.Token},
		{"lease", want.lease, got.Lease},
		{"a live lease", live, got.Remaining > 0},
		{"attempts", want.attempts, got.Attempts},
		{"duplicates", int64(want.duplicates), got.Duplicates},
		{"status", want.status, got.Status},
		{"event type", want.eventType, got.EventType},
		{"digest", want.body, got.BodySHA256[0]},
		{"response", true, bytes.Equal([]byte(want.response), got.Response)},
	} {
		if f.want != f.got {
			return fmt.Sprintf("%s is %v, want %v", f.name, f.got, f.want)
		}
	}
	return ""
}

// same tells the errors of the protocol apart: a completion of somebody else is more than a lost lease.
func same(err, want error) bool {
	if err == nil || want == nil {
		return err == want
	}
	return errors.Is(err, want) && errors.Is(err, claim.ErrProcessedByOther) == errors.Is(want, claim.ErrProcessedByOther)
}
