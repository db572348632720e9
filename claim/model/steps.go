package model

// maxDeliveries is what a state has room for.
const maxDeliveries = 3

// phase is where a delivery is.
type phase uint8

const (
	unsent phase = iota
	claiming
	waiting
	running
	completing
	releasing
	lateComplete // answered; the completion is repeated in the background
	lateRelease  // answered; the release is repeated in the background
	gone
)

// asks is the request that a delivery in this phase has under way.
func (p phase) asks() op {
	switch p {
	case claiming:
		return claim
	case completing, lateComplete:
		return complete
	}
	return release
}

// app is what the application does with the request of a delivery.
type app uint8

const (
	idle app = iota
	working
	succeeded // and its answer is on its way
	gaveUp    // likewise
	orphaned  // working for nobody
)

// delivery is one, on a proxy of its own.
type delivery struct {
	phase    phase
	request  answer // the request under way, or the answer to it
	ghosts   op     // requests that the client has given up and the network has not
	app      app
	unknown  bool // a claim of it may have been granted
	released bool // a release of it was confirmed
}

// state is everything, at a moment.
type state struct {
	deliveries [maxDeliveries]delivery
	record     kind
	token      uint8 // of the delivery that the record names, from 1
	live       bool  // the lease
	runs       uint8 // that succeeded; two are as many as more
	excused    bool  // something has happened that the promises leave out
	broken     Promise
}

// event is a step from one state to the next.
type event struct {
	delivery int // -1: none
	what     what
	op       op
	answer   answer
}

// stepper collects the steps that are possible in a state.
type stepper struct {
	p         *protocol
	n, ghosts int
	faults    bool // also those that excuse a second run
	reuse     bool // a delivery that is gone makes room for the next retry
	from      state
	out       func(state, event)
}

// do is one step of delivery i: change is made to a copy of the state.
func (t *stepper) do(i int, w what, change func(s *state, d *delivery)) {
	t.send(i, w, 0, func(s *state, d *delivery) answer { change(s, d); return none })
}

func (t *stepper) send(i int, w what, o op, change func(s *state, d *delivery) answer) {
	s := t.from
	var d *delivery
	if i >= 0 {
		d = &s.deliveries[i]
	}
	a := change(&s, d)
	if s.excused && !t.faults {
		return
	}
	t.out(s, event{i, w, o, a})
}

// room reports whether one more request may linger in the network.
func (t *stepper) room(i int, o op) bool {
	count := 0
	for _, d := range t.from.deliveries[:t.n] {
		for g := d.ghosts; g != 0; g &= g - 1 {
			count++
		}
	}
	return t.from.deliveries[i].ghosts&o == 0 && count < t.ghosts
}

func (t *stepper) all() {
	for i := range t.n {
		t.network(i)
		t.client(i)
		t.application(i)
		t.crash(i)
	}
	t.store()
}

// network carries the requests of delivery i, or does not.
func (t *stepper) network(i int) {
	d := t.from.deliveries[i]
	if o := d.phase.asks(); d.request == sent {
		t.send(i, isAnswered, o, func(s *state, d *delivery) answer {
			d.request = t.apply(s, i, o)
			return d.request
		})
		t.send(i, isAppliedUnheard, o, func(s *state, d *delivery) answer {
			a := t.apply(s, i, o)
			d.fail()
			return a
		})
		t.send(i, isLost, o, func(_ *state, d *delivery) answer { d.fail(); return none })
		if t.room(i, o) {
			t.send(i, lingers, o, func(_ *state, d *delivery) answer { d.ghosts |= o; d.fail(); return none })
			t.send(i, isDoubled, o, func(_ *state, d *delivery) answer { d.ghosts |= o; return none })
		}
	}
	for _, o := range []op{claim, renew, complete, release} {
		if d.ghosts&o == 0 {
			continue
		}
		t.send(i, isAppliedLate, o, func(s *state, d *delivery) answer { d.ghosts &^= o; return t.p.apply(s, i, o) })
		t.send(i, vanishes, o, func(_ *state, d *delivery) answer { d.ghosts &^= o; return none })
	}
}

// apply is the store's step for a delivery that is there to hear of it, and the check of what it hears.
func (t *stepper) apply(s *state, i int, o op) answer {
	mine := s.record == processing && s.token == t.p.token(i)
	a := t.p.apply(s, i, o)
	if o == complete && a == lost && mine {
		s.broken |= Kept
	}
	return a
}

// fail is what a client sees of a request that is not answered.
func (d *delivery) fail() {
	d.request = none
	if d.phase == claiming {
		d.unknown = true
	}
}

// leave answers the provider with an error. What may have been granted is released in the background.
func (d *delivery) leave() {
	d.request = none
	d.phase = gone
	if d.unknown {
		d.phase = lateRelease
	}
}

// tell answers the provider with 2xx.
func (s *state) tell() {
	if s.runs == 0 {
		s.broken |= Acknowledged
	}
}

// client is the proxy's part in delivery i.
func (t *stepper) client(i int) {
	d := t.from.deliveries[i]
	goes := func(w what, to phase) {
		t.do(i, w, func(_ *state, d *delivery) { d.phase, d.request = to, sent })
	}
	ends := func(w what, ok bool) {
		t.do(i, w, func(s *state, d *delivery) {
			if ok {
				s.tell()
			}
			d.released = d.phase.asks() == release && d.request == done
			d.phase, d.request = gone, none
		})
	}
	switch d.phase {
	case unsent:
		goes(arrives, claiming)
	case claiming:
		switch d.request {
		case none:
			goes(resends, claiming)
			t.do(i, leaves, func(_ *state, d *delivery) { d.leave() })
			if t.p.releaseWhileResending && t.room(i, release) {
				t.do(i, resendsAndReleases, func(_ *state, d *delivery) { d.request = sent; d.ghosts |= release })
			}
		case granted:
			t.do(i, forwards, func(_ *state, d *delivery) {
				d.phase, d.request, d.app, d.unknown = running, none, working, false
				if t.p.earlyComplete {
					d.phase, d.request = completing, sent
				}
			})
		case inFlight:
			if t.p.earlyOK {
				t.do(i, answersOK, func(s *state, d *delivery) { s.tell(); d.leave() })
			} else {
				t.do(i, waits, func(_ *state, d *delivery) { d.phase, d.request = waiting, none })
			}
		case duplicate:
			ends(answersOK, true)
		case refused:
			t.do(i, leaves, func(_ *state, d *delivery) { d.unknown = false; d.leave() })
		}
	case waiting:
		goes(wakes, claiming)
		t.do(i, leaves, func(_ *state, d *delivery) { d.leave() })
	case running:
		if t.room(i, renew) {
			t.send(i, lingers, renew, func(_ *state, d *delivery) answer { d.ghosts |= renew; return none })
		}
		if !t.from.live {
			t.send(i, isAnswered, renew, func(s *state, _ *delivery) answer { return t.p.apply(s, i, renew) })
		}
		switch d.app {
		case succeeded:
			t.do(i, seesSuccess, func(_ *state, d *delivery) { d.phase, d.request, d.app = completing, sent, idle })
			t.do(i, missesSuccess, func(s *state, d *delivery) {
				d.phase, d.request, d.app = releasing, sent, idle
				s.excused = true
			})
		case gaveUp:
			t.do(i, seesFailure, func(_ *state, d *delivery) { d.phase, d.request, d.app = releasing, sent, idle })
		case working:
			t.do(i, losesPatience, func(_ *state, d *delivery) { d.phase, d.request, d.app = releasing, sent, orphaned })
		}
	case completing:
		switch d.request {
		case none: // the application's answer goes out all the same
			t.do(i, answersOK, func(s *state, d *delivery) { s.tell(); d.phase = lateComplete })
		case done, lost:
			ends(answersOK, true)
		}
	case releasing:
		switch d.request {
		case none:
			t.do(i, leaves, func(_ *state, d *delivery) { d.phase = lateRelease })
		case done, lost:
			ends(leaves, false)
		}
	case lateComplete, lateRelease:
		switch d.request {
		case none:
			goes(resends, d.phase)
			if d.phase == lateRelease {
				ends(forgets, false)
			}
		case done, lost:
			ends(forgets, false)
		}
	case gone:
		if t.reuse && d.ghosts == 0 && d.app == idle {
			t.do(i, isFollowed, func(s *state, d *delivery) {
				*d = delivery{}
				if s.token == t.p.token(i) {
					s.token = maxDeliveries + 1 // of one that is no more
				}
			})
		}
	}
}

// application is its work on the request of delivery i.
func (t *stepper) application(i int) {
	d := t.from.deliveries[i]
	if d.app != working && d.app != orphaned {
		return
	}
	attached := d.app == working && d.phase == running
	t.do(i, isDoneByApp, func(s *state, d *delivery) {
		s.runs = min(s.runs+1, 2)
		s.excused = s.excused || d.app == orphaned
		d.app = idle
		if attached {
			d.app = succeeded
		}
		if s.runs == 2 && !s.excused {
			s.broken |= Once
		}
	})
	t.do(i, isFailedByApp, func(_ *state, d *delivery) {
		d.app = idle
		if attached {
			d.app = gaveUp
		}
	})
}

// crash ends the proxy of delivery i.
func (t *stepper) crash(i int) {
	d := t.from.deliveries[i]
	if d.phase == unsent || d.phase == gone {
		return
	}
	end := func(s *state, d *delivery) {
		s.excused = s.excused || d.runs()
		if d.app == working {
			d.app = orphaned
		} else if d.app != orphaned {
			d.app = idle
		}
		d.phase, d.request, d.unknown = gone, none, false
	}
	t.do(i, crashes, end)
	if o := d.phase.asks(); d.request == sent && t.room(i, o) {
		t.send(i, crashesWithRequestOut, o, func(s *state, d *delivery) answer { end(s, d); d.ghosts |= o; return none })
	}
}

// runs reports whether the application has, or has had, the event on behalf of d, and the store does not know yet.
func (d *delivery) runs() bool {
	return d.phase == running || d.phase == completing || d.phase == lateComplete
}

// store is what happens at the store by itself.
func (t *stepper) store() {
	if t.from.record == processing && t.from.live && !t.p.noLease {
		t.do(-1, leaseEnds, func(s *state, _ *delivery) {
			s.live = false
			for i, d := range s.deliveries[:t.n] {
				if s.token == t.p.token(i) && (d.runs() || d.phase == claiming && d.request == granted) {
					s.excused = true
				}
			}
		})
	}
	if t.from.record != absent && !t.reuse { // not the way out that a provider can count on
		t.do(-1, dataIsLost, func(s *state, _ *delivery) {
			s.record, s.token, s.live, s.excused = absent, 0, false, true
		})
	}
}
