package claimtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// modelCases: the store answers like the reference state machine, whatever comes in whatever order.
var modelCases = []testCase{
	{"random operations, seed 1", func(e *env) { e.random(1) }},
	{"random operations, seed 2", func(e *env) { e.random(2) }},
	{"random operations, seed 3", func(e *env) { e.random(3) }},
}

// random holds the store's answers against those of claim.Entry. Leases and retentions either outlast the test or are
// over before the next step, so that no answer hangs on how fast a step is.
func (e *env) random(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	steps := 150
	if e.advance != nil {
		steps = 3000
	}
	const blink = time.Millisecond
	keys := []string{e.key("a"), e.key("b")}
	tokens := []claim.Token{claim.NewToken(), claim.NewToken(), claim.NewToken()}
	types := []string{"", "one", "two"}
	model := map[string]claim.Entry{}
	now := time.Now() // the model's clock: moved on only when a blink must be over
	var trace []string
	for range steps {
		k, token := keys[rnd.IntN(len(keys))], tokens[rnd.IntN(len(tokens))]
		lease, keep := long, long
		if rnd.IntN(8) == 0 {
			lease = blink
			if rnd.IntN(3) == 0 {
				keep = blink
			}
		}
		body, status, kind := digest(types[rnd.IntN(3)]), 200+rnd.IntN(300), types[rnd.IntN(3)]
		entry := model[k].At(now)
		var got, want string
		switch op := rnd.IntN(12); {
		case op < 5:
			c := claim.Claim{Key: k, Token: token, Lease: lease, Keep: keep, EventType: kind, BodySHA256: body, OriginalID: kind}
			o, r, err := e.store.Claim(e.ctx(), c)
			var m claim.ClaimOutcome
			entry, m = entry.Claim(now, c)
			got, want = fmt.Sprint("claim: ", o, err), fmt.Sprint("claim: ", m, error(nil))
			if lease > blink {
				got += " " + describe(r)
				want += " " + describe(entry.Record(k, now))
			}
		case op < 6:
			c := claim.Renewal{Key: k, Token: token, Lease: lease, Keep: keep}
			err := e.store.Renew(e.ctx(), c)
			var m error
			entry, m = entry.Renew(now, c)
			got, want = fmt.Sprint("renew: ", err), fmt.Sprint("renew: ", m)
		case op < 8:
			c := claim.Completion{Key: k, Token: token, TTL: keep, Status: status, EventType: kind, BodySHA256: body, OriginalID: kind}
			if rnd.IntN(2) == 0 {
				c.Response = []byte(kind + "\x00answer")
			}
			o, err := e.store.Complete(e.ctx(), c)
			var m claim.CompleteOutcome
			var merr error
			entry, m, merr = entry.Complete(now, c)
			got, want = fmt.Sprint("complete: ", o, err), fmt.Sprint("complete: ", m, merr)
		case op < 10:
			c := claim.Release{Key: k, Token: token, Keep: keep, Status: status}
			o, err := e.store.Release(e.ctx(), c)
			var m claim.ReleaseOutcome
			var merr error
			entry, m, merr = entry.Release(now, c)
			got, want = fmt.Sprint("release: ", o, err), fmt.Sprint("release: ", m, merr)
		case op < 11:
			found, err := e.store.Forget(e.ctx(), k)
			got, want = fmt.Sprint("forget: ", found, err), fmt.Sprint("forget: ", entry.State != 0, error(nil))
			entry = claim.Entry{}
		}
		model[k] = entry
		trace = append(trace, fmt.Sprintf("key %s token %x lease %s keep %s %s", k[len(k)-1:], token[:2], lease, keep, want))
		if got != want {
			e.Fatalf("step %d: got  %s\nwant %s\nafter\n%s", len(trace), got, want, last(trace, 8))
		}
		if lease == blink {
			e.pass(5 * time.Millisecond)
			now = now.Add(5 * time.Millisecond)
		}
		r, err := e.store.Get(e.ctx(), k)
		m := entry.Record(k, now)
		if (err == nil) != (m.State != 0) || err == nil && describe(r) != describe(m) {
			e.Fatalf("step %d: record is  %s (%v)\nwant %s\nafter\n%s", len(trace), describe(r), err, describe(m), last(trace, 8))
		}
	}
}

// describe is a record without its times.
func describe(r claim.Record) string {
	return fmt.Sprintf("%s %x lease %s live %t attempts %d duplicates %d type %q status %d sha %x original %q response %q", r.State, r.Token[:2],
		r.Lease, r.Remaining > 0, r.Attempts, r.Duplicates, r.EventType, r.Status, r.BodySHA256[:2], r.OriginalID, r.Response)
}

func last(lines []string, n int) (s string) {
	for _, line := range lines[max(0, len(lines)-n):] {
		s += line + "\n"
	}
	return s
}
