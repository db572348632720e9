package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Promise is one that a protocol can break; several are joined by or.
type Promise uint8

const (
	// Acknowledged: a provider is told 2xx only after a run of the application has succeeded.
	Acknowledged Promise = 1 << iota
	// Once: no second run succeeds without an excuse.
	Once
	// Final: a processed record stays processed.
	Final
	// Kept: a success is not refused while the record still names its delivery.
	Kept
	// Void: a claim that was released is not granted afterwards, when nobody else has come in between.
	Void
	// Open: from everywhere there is a way to a run that succeeds.
	Open
)

// String names the promises.
func (p Promise) String() string {
	var words []string
	for i, word := range []string{"acknowledged", "once", "final", "kept", "void", "open"} {
		if p&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// bounds are how far the checker looks.
type bounds struct {
	deliveries int
	ghosts     int  // requests that linger in the network at a time
	faults     bool // also those that excuse a second run
	endless    bool // the provider never stops to retry
	named      bool // deliveries keep their numbers, which a trace is easier to read with and more states are looked at for
}

// result is what it found.
type result struct {
	states int
	broken Promise
	trace  string // the shortest way there
}

// check looks at every state within the bounds until one breaks one of the promises.
func check(p protocol, b bounds, promises Promise) result {
	g := graph{index: map[state]int32{}}
	g.add(state{}, -1, event{})
	t := stepper{p: &p, n: b.deliveries, ghosts: b.ghosts, faults: b.faults || b.endless, reuse: b.endless}
	for at := int32(0); int(at) < len(g.states); at++ {
		found := int32(-1)
		t.from = g.states[at]
		t.out = func(s state, e event) {
			if found >= 0 {
				return
			}
			if b.deliveries == 1 && s.deliveries[0].released && s.record == processing && !s.excused {
				s.broken |= Void
			}
			s.broken &= promises
			if b.endless { // what has happened is of no interest, only what can
				s.excused, s.runs = false, min(s.runs, 1)
			}
			if !p.oneToken && !b.named {
				s.sort(b.deliveries)
			}
			to := g.add(s, at, e)
			if b.endless {
				g.back[to] = append(g.back[to], at)
			}
			if s.broken != 0 {
				found = to
			}
		}
		t.all()
		if found >= 0 {
			return result{len(g.states), g.states[found].broken, g.trace(found)}
		}
	}
	if promises&Open != 0 {
		if stuck := g.stuck(); stuck >= 0 {
			return result{len(g.states), Open, g.trace(stuck)}
		}
	}
	return result{states: len(g.states)}
}

// graph is the states that were reached, in the order of their distance from the first.
type graph struct {
	states []state
	index  map[state]int32
	parent []int32
	by     []event
	back   [][]int32
}

func (g *graph) add(s state, parent int32, by event) int32 {
	if at, known := g.index[s]; known {
		return at
	}
	at := int32(len(g.states))
	g.index[s] = at
	g.states, g.parent, g.by, g.back = append(g.states, s), append(g.parent, parent), append(g.by, by), append(g.back, nil)
	return at
}

// stuck returns a state from which no run that succeeds can be reached, or -1.
func (g *graph) stuck() int32 {
	good := make([]bool, len(g.states))
	var todo []int32
	for i, s := range g.states {
		if s.runs > 0 {
			good[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range g.back[at] {
			if !good[from] {
				good[from] = true
				todo = append(todo, from)
			}
		}
	}
	return int32(slices.Index(good, false))
}

// trace tells the way to a state. Where deliveries are not named they are numbered anew in every line, as sort has them.
func (g *graph) trace(at int32) string {
	var lines []string
	for ; g.parent[at] >= 0; at = g.parent[at] {
		lines = append(lines, fmt.Sprintf("%-75s %s\n", g.by[at], g.states[at]))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "")
}

// sort puts the deliveries in an order: which of them is the first makes no difference.
func (s *state) sort(n int) {
	order := [maxDeliveries]int{0, 1, 2}
	weight := func(i int) int {
		d := s.deliveries[i]
		w := int(d.phase)<<24 | int(d.request)<<16 | int(d.ghosts)<<8 | int(d.app)<<4
		for bit, set := range []bool{s.token == uint8(i+1), d.unknown, d.released} {
			if set {
				w |= 1 << bit
			}
		}
		return -w // who came first stands first
	}
	slices.SortStableFunc(order[:n], func(a, b int) int { return cmp.Compare(weight(a), weight(b)) })
	old := *s
	for to, from := range order[:n] {
		s.deliveries[to] = old.deliveries[from]
		if old.token == uint8(from+1) {
			s.token = uint8(to + 1)
		}
	}
}
