package model

import (
	"flag"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "look as far as the memory of a large machine goes: minutes, and some gigabytes")

const all = Acknowledged | Once | Final | Kept | Void

func TestProtocol(t *testing.T) {
	runs := map[string]struct {
		bounds   bounds
		promises Promise
	}{
		"second runs, two deliveries":         {bounds{deliveries: 2, ghosts: 2}, all},
		"second runs, three deliveries":       {bounds{deliveries: 3, ghosts: 0}, all},
		"all faults, two deliveries":          {bounds{deliveries: 2, ghosts: 1, faults: true}, all},
		"all faults, one delivery":            {bounds{deliveries: 1, ghosts: 4, faults: true}, all},
		"endless retries of two deliveries":   {bounds{deliveries: 2, ghosts: 1, endless: true}, all&^Once | Open},
		"endless retries with a lost request": {bounds{deliveries: 1, ghosts: 2, endless: true}, all&^(Once|Void) | Open},
	}
	if *full {
		runs["second runs, three deliveries, two lost requests"] = struct {
			bounds   bounds
			promises Promise
		}{bounds{deliveries: 3, ghosts: 2}, all}
		runs["all faults, three deliveries, one lost request"] = struct {
			bounds   bounds
			promises Promise
		}{bounds{deliveries: 3, ghosts: 1, faults: true}, all}
	}
	for name, c := range runs {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			r := check(real(), c.bounds, c.promises)
			t.Logf("%d states in %s", r.states, time.Since(start).Round(time.Millisecond))
			if r.broken != 0 {
				t.Errorf("breaks %s:\n%s", r.broken, r.trace)
			}
		})
	}
}

// lookAlikes are protocols that seem to do, each with the promise that it breaks.
var lookAlikes = map[string]struct {
	protocol protocol
	bounds   bounds
	breaks   Promise
}{
	"no fencing": {real().instead(
		rule{renew, processing, anyone, whatever, processing, other, live, done},
		rule{complete, processing, anyone, whatever, processed, self, whatever, done},
		rule{complete, failed, anyone, whatever, processed, self, whatever, done},
		rule{release, processing, anyone, whatever, failed, self, whatever, done},
	), bounds{deliveries: 3}, Once},
	"plain DEL": {real().instead(
		rule{release, processing, anyone, whatever, absent, other, whatever, done},
		rule{release, processed, anyone, whatever, absent, other, whatever, done},
		rule{release, failed, anyone, whatever, absent, other, whatever, done},
	), bounds{deliveries: 3}, Once},
	"plain DEL of what is processed": {real().instead(
		rule{release, processed, anyone, whatever, absent, other, whatever, done},
	), bounds{deliveries: 2, ghosts: 1}, Final},
	"2xx in flight": {with(func(p *protocol) { p.earlyOK = true }), bounds{deliveries: 2}, Acknowledged},
	"completing before the application's answer": {with(func(p *protocol) { p.earlyComplete = true }), bounds{deliveries: 1}, Acknowledged},
	"one token for all":                          {with(func(p *protocol) { p.oneToken = true }), bounds{deliveries: 2}, Once},
	"release while the same claim is resent": {with(func(p *protocol) { p.releaseWhileResending = true }),
		bounds{deliveries: 2, ghosts: 1}, Once},
	"the same answer always": {real().instead(
		rule{claim, processed, self, whatever, processing, self, live, granted},
	), bounds{deliveries: 2, ghosts: 1}, Once},
	"the same answer always, to what is processed": {real().instead(
		rule{claim, processed, self, whatever, processing, self, live, granted},
	), bounds{deliveries: 1, ghosts: 1}, Final},
	"a resent claim does not restart the lease": {real().instead(
		rule{claim, processing, self, whatever, processing, self, whatever, granted},
	), bounds{deliveries: 2}, Once},
	"an expired untaken lease is lost": {real().instead(
		rule{complete, processing, self, over, processing, self, whatever, lost},
	), bounds{deliveries: 1, faults: true}, Kept},
	"no lease": {with(func(p *protocol) { p.noLease = true }), bounds{deliveries: 2, endless: true}, Open},
	"a release that finds nothing leaves nothing": {real().instead(
		rule{release, absent, anyone, whatever, absent, other, whatever, done},
	), bounds{deliveries: 1, ghosts: 1}, Void},
	"a released token is granted": {real().instead(
		rule{claim, failed, self, whatever, processing, self, live, granted},
	), bounds{deliveries: 1, ghosts: 1}, Void},
	"processed is claimed like failed": {real().instead(
		rule{claim, processed, other, whatever, processing, self, live, granted},
	), bounds{deliveries: 2}, Once},
	"two hold the key": {real().instead(
		rule{claim, processing, other, live, processing, self, live, granted},
	), bounds{deliveries: 2}, Once},
}

func with(change func(*protocol)) protocol {
	p := real()
	change(&p)
	return p
}

func TestLookAlikes(t *testing.T) {
	for name, c := range lookAlikes {
		t.Run(name, func(t *testing.T) {
			c.bounds.named = true
			r := check(c.protocol, c.bounds, c.breaks)
			if r.broken != c.breaks {
				t.Fatalf("breaks %q, want %q; %d states", r.broken, c.breaks, r.states)
			}
			t.Logf("breaks %q after %d states:\n%s", r.broken, r.states, r.trace)
			// It is the change that breaks it, not how far one looks.
			if r := check(real(), c.bounds, c.breaks); r.broken != 0 {
				t.Errorf("the protocol itself breaks %q:\n%s", r.broken, r.trace)
			}
		})
	}
}
