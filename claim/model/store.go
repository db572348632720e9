// Package model holds the claim protocol against everything that can happen around it: deliveries that the provider
// repeats, proxies that crash at any step, an application whose answer may be lost, a store with leases on its own clock,
// and requests that are lost, repeated, or applied after the client has given up. It looks at every state that can be
// reached, in bounds, and shows the shortest way to one in which a promise is broken. Its test finds the protocol clean and
// each of its look-alikes broken.
//
// The model has one key, and no time: it shows that a way to success always exists, not how soon.
package model

// op is a request to the store.
type op uint8

const (
	claim op = 1 << iota
	renew
	complete
	release
)

// kind is the state of the record.
type kind uint8

const (
	absent kind = iota
	processing
	processed
	failed
)

// answer is what the store says to a request.
type answer uint8

const (
	none answer = iota // there is no request, or it has failed
	sent               // the request is on its way
	granted
	inFlight
	duplicate
	refused
	done
	lost
)

// who is the delivery that the record names, as the one that asks sees it.
type who uint8

const (
	anyone who = iota
	self
	other
)

// span is the lease of a record.
type span uint8

const (
	whatever span = iota
	live
	over
)

// rule is what the store does with a request. The first one that fits holds; if none does nothing is changed, and the
// answer is lost.
type rule struct {
	op    op
	is    kind
	by    who
	lease span

	becomes kind
	token   who  // self: the record names the one that asks from now on
	lives   span // live: a lease begins
	answer  answer
}

// protocol is how the store and its clients behave. The zero value of each switch is the real one.
type protocol struct {
	rules []rule

	oneToken              bool // all deliveries of a proxy claim with the same token
	noLease               bool // a claim never runs out
	earlyOK               bool // a delivery in flight is answered 2xx
	earlyComplete         bool // complete is sent before the application has answered
	releaseWhileResending bool
}

// real is the protocol of package claim.
func real() protocol {
	return protocol{rules: []rule{
		{claim, absent, anyone, whatever, processing, self, live, granted},
		{claim, processing, self, whatever, processing, self, live, granted},
		{claim, processing, other, over, processing, self, live, granted},
		{claim, processing, other, live, processing, other, live, inFlight},
		{claim, processed, anyone, whatever, processed, other, whatever, duplicate},
		{claim, failed, self, whatever, failed, self, whatever, refused},
		{claim, failed, other, whatever, processing, self, live, granted},

		{renew, processing, self, whatever, processing, self, live, done},

		{complete, absent, anyone, whatever, processed, self, whatever, done},
		{complete, processing, self, whatever, processed, self, whatever, done},
		{complete, processed, self, whatever, processed, self, whatever, done},

		{release, absent, anyone, whatever, failed, self, whatever, done},
		{release, processing, self, whatever, failed, self, whatever, done},
		{release, failed, self, whatever, failed, self, whatever, done},
	}}
}

// instead puts rules in front of those of p.
func (p protocol) instead(rules ...rule) protocol {
	p.rules = append(rules, p.rules...)
	return p
}

// apply lets the store carry out a request of delivery i.
func (p *protocol) apply(s *state, i int, o op) answer {
	token := p.token(i)
	for _, r := range p.rules {
		if r.op != o || r.is != s.record || r.by == self && s.token != token || r.by == other && s.token == token ||
			r.lease == live && !s.live || r.lease == over && s.live {
			continue
		}
		if s.record == processed && r.becomes != processed {
			s.broken |= Final
		}
		s.record = r.becomes
		if r.token == self {
			s.token = token
		}
		s.live = s.record == processing && (r.lives == live || s.live)
		if s.record == absent {
			s.token = 0
		}
		return r.answer
	}
	return lost
}

func (p *protocol) token(i int) uint8 {
	if p.oneToken {
		return 1
	}
	return uint8(i + 1)
}
