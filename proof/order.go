package proof

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// kind is an operation of a store.
type kind uint8

const (
	isClaim kind = iota
	isRenew
	isComplete
	isRelease
	isGet
	isForget
)

// input is one call of an operation. What it was called with, and when, by the clock of the clients.
type input struct {
	kind  kind
	key   string
	token claim.Token
	lease time.Duration
	from  int64 // before the call
	to    int64 // after the answer; the end of time where there was none
}

// output is the answer.
type output struct {
	unknown  bool // there was none: the operation takes effect at some time, or never
	answer   string
	attempts int
	token    claim.Token
}

// unanswered is the time of an answer that never comes.
const unanswered = math.MaxInt64

// seen is what is known of a record when operations are put in an order. The store's clock is not: a lease begins between
// the call and the answer of what began it.
type seen struct {
	state    claim.State
	token    claim.Token
	attempts int
	// The lease ends at some time from earliest to latest.
	earliest, latest int64
}

// slack is what the clocks differ by: stores count in whole milliseconds, so that a lease may end by as much too early.
const slack = int64(time.Millisecond)

// mayBeOver and mayBeLive report what the lease can be for an operation that takes effect between from and to.
func (s seen) mayBeOver(in input) bool { return in.to >= s.earliest-slack }
func (s seen) mayBeLive(in input) bool { return in.from-slack <= s.latest }

func (s seen) held(in input) seen {
	s.state, s.token, s.earliest = claim.Processing, in.token, in.from+int64(in.lease)
	s.latest = unanswered
	if in.to < unanswered-int64(in.lease) {
		s.latest = in.to + int64(in.lease)
	}
	return s
}

func (s seen) became(state claim.State, token claim.Token) seen {
	return seen{state: state, token: token, attempts: s.attempts}
}

// next is every pair of an answer and a record after it that the protocol allows.
func (s seen) next(in input) (all []step) {
	mine := s.token == in.token
	may := func(after seen, answer string) { all = append(all, step{after, answer}) }
	switch in.kind {
	case isClaim:
		switch {
		case s.state == claim.Processed && mine:
			may(s, claim.ProcessedBySelf.String())
		case s.state == claim.Processed:
			may(s, claim.Duplicate.String())
		case s.state == claim.Failed && mine:
			may(s, claim.Refused.String())
		case s.state == claim.Processing && mine:
			may(s.held(in), claim.GrantedAgain.String())
		default:
			if s.state == claim.Processing && s.mayBeLive(in) {
				may(s, claim.InFlight.String())
			}
			if s.state != claim.Processing || s.mayBeOver(in) {
				granted := s.held(in)
				granted.attempts++
				may(granted, claim.Granted.String())
			}
		}
	case isRenew:
		switch {
		case s.state == claim.Processing && mine:
			may(s.held(in), "renewed")
		case s.state == claim.Processed && mine:
			may(s, "own")
		default:
			may(s, "lost")
		}
	case isComplete:
		switch {
		case s.state == 0:
			s.attempts = 1
			may(s.became(claim.Processed, in.token), "anew")
		case s.state == claim.Processed && mine:
			may(s, "already")
		case s.state == claim.Processed:
			may(s, "other")
		case s.state == claim.Processing && mine:
			may(s.became(claim.Processed, in.token), "written")
		default:
			may(s, "lost")
		}
	case isRelease:
		switch {
		case s.state == 0:
			may(s.became(claim.Failed, in.token), "void")
		case !mine:
			may(s, "lost")
		case s.state == claim.Processed:
			may(s, "own")
		case s.state == claim.Failed:
			may(s, "already")
		default:
			may(s.became(claim.Failed, in.token), "released")
		}
	case isGet:
		may(s, s.state.String())
	case isForget:
		may(seen{}, fmt.Sprint(s.state != 0))
	}
	return all
}

type step struct {
	after  seen
	answer string
}

// order is the question to porcupine: can the answers be explained by one operation after the other?
var order = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{seen{}} },
	Step: func(state, in, out any) (states []any) {
		s, i, o := state.(seen), in.(input), out.(output)
		if o.unknown {
			states = append(states, s) // it never takes effect
		}
		for _, n := range s.next(i) {
			tells := o.attempts != 0 // the record is in the answer
			if o.unknown || n.answer == o.answer && (!tells || o.attempts == n.after.attempts && o.token == n.after.token) {
				states = append(states, n.after)
			}
		}
		return states
	},
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(input).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		name := [...]string{"claim", "renew", "complete", "release", "get", "forget"}[i.kind]
		answer := o.answer
		if o.unknown {
			answer = "?"
		}
		return fmt.Sprintf("%s %x: %s", name, i.token[:2], answer)
	},
	DescribeState: func(state any) string {
		s := state.(seen)
		return fmt.Sprintf("%s %x", s.state, s.token[:2])
	},
}).ToModel()

// word is an answer of the protocol, or false where there was none.
func word(ok string, err error) (string, bool) {
	switch {
	case err == nil:
		return ok, true
	case errors.Is(err, claim.ErrProcessedByOther):
		return "other", true
	case errors.Is(err, claim.ErrLeaseLost):
		return "lost", true
	case errors.Is(err, claim.ErrProcessedBySelf):
		return "own", true
	case errors.Is(err, claim.ErrNotFound):
		return claim.State(0).String(), true
	}
	return "", false
}
