package claimtest

import (
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// grantCases: who gets the claim, and what everybody else is told.
var grantCases = []testCase{
	{"first claim is granted", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		r := e.claim(ask(k, token), claim.Granted)
		if r.State != claim.Processing || r.Token != token || r.Attempts != 1 || r.Lease != long || r.Remaining <= 0 ||
			r.Remaining > long || r.FirstSeen.IsZero() || r.Updated.Before(r.FirstSeen) || r.EventType != "charge.paid" {
			e.Fatalf("granted with record %+v", r)
		}
	}},
	{"claim in flight is told the remaining lease", func(e *env) {
		k, holder := e.key("1"), claim.NewToken()
		e.claim(ask(k, holder), claim.Granted)
		var r claim.Record
		e.unchanged(k, func() { r = e.claim(ask(k, claim.NewToken()), claim.InFlight) })
		if r.State != claim.Processing || r.Token != holder || r.Attempts != 1 || r.Remaining <= 0 || r.Remaining >= long {
			e.Fatalf("in flight with record %+v", r)
		}
	}},
	{"in flight is never told to be processed", func(e *env) { // look-alike: early 200 in flight
		k, holder := e.key("1"), claim.NewToken()
		e.claim(ask(k, holder), claim.Granted)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
		e.release(release(k, holder), claim.Released)
		e.claim(ask(k, claim.NewToken()), claim.Granted)
	}},
	{"another delivery is never taken for a resend", func(e *env) { // look-alike: one token for all
		k := e.key("1")
		e.claim(ask(k, claim.NewToken()), claim.Granted)
		for range 3 {
			e.claim(ask(k, claim.NewToken()), claim.InFlight)
		}
	}},
	{"tokens differ in every byte", func(e *env) {
		k, holder := e.key("1"), claim.Token{0, 255, 0, '\n', '\r', 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}
		e.claim(ask(k, holder), claim.Granted)
		for i := range holder {
			other := holder
			other[i] ^= 1
			e.claim(ask(k, other), claim.InFlight)
		}
		e.claim(ask(k, holder), claim.GrantedAgain)
		e.claim(ask(e.key("2"), claim.Token{}), claim.Granted)
		e.claim(ask(e.key("2"), claim.Token{}), claim.GrantedAgain)
	}},
	{"keys do not touch each other", func(e *env) {
		a, b := claim.NewToken(), claim.NewToken()
		e.processed(e.key("1"), a)
		e.claim(ask(e.key("2"), b), claim.Granted)
		e.releaseFails(release(e.key("2"), a), claim.ErrLeaseLost)
		e.absent(e.key("3"))
		e.state(e.key("1"), claim.Processed)
		e.state(e.key("2"), claim.Processing)
	}},
	{"keys with odd characters are kept apart", func(e *env) {
		ids := []string{
			"a", "A", "a:", "a:b", "a%3Ab", "*", "?", "[a]", "a*", `\`, `\*`, "{a}", "{b}", "^", "-", "\"", "'", "$1", "..", "/",
			"%", "%00", "sha256-00", "\x00", "a\x00b", "a\nb", "a b", "ä", "\xff\xfe", string(make([]byte, 300)),
		}
		for _, id := range ids {
			e.claim(ask(e.key(id), claim.NewToken()), claim.Granted)
		}
		for _, id := range ids {
			if r := e.state(e.key(id), claim.Processing); r.Attempts != 1 {
				e.Fatalf("%q was claimed %d times", id, r.Attempts)
			}
		}
	}},
	{"expired lease is taken over", func(e *env) { // look-alike: no lease
		k := e.key("1")
		first := e.claim(askShort(k, claim.NewToken()), claim.Granted)
		e.pass(short)
		if r := e.state(k, claim.Processing); r.Remaining != 0 {
			e.Fatalf("a lease that ran out has %s left", r.Remaining)
		}
		token := claim.NewToken()
		r := e.claim(ask(k, token), claim.Granted)
		if r.Token != token || r.Attempts != 2 || !r.FirstSeen.Equal(first.FirstSeen) || r.Remaining <= 0 {
			e.Fatalf("taken over with record %+v, after %+v", r, first)
		}
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"taken over once only", func(e *env) {
		k := e.key("1")
		e.claim(askShort(k, claim.NewToken()), claim.Granted)
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Granted)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"failed is open to the next claim", func(e *env) {
		k := e.key("1")
		e.failed(k, claim.NewToken())
		if r := e.claim(ask(k, claim.NewToken()), claim.Granted); r.Attempts != 2 {
			e.Fatalf("attempt %d, want 2", r.Attempts)
		}
	}},
}

// holderCases: what the holder may do, and nobody else.
var holderCases = []testCase{
	{"own claim resent is granted again", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		if r := e.claim(ask(k, token), claim.GrantedAgain); r.Attempts != 1 || r.Token != token {
			e.Fatalf("granted again with record %+v", r)
		}
	}},
	{"resent claim restarts the lease", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		if r := e.claim(ask(k, token), claim.GrantedAgain); r.Lease != long || r.Remaining <= short {
			e.Fatalf("granted again with %s left of %s", r.Remaining, r.Lease)
		}
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"resent claim after its lease is granted again", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.pass(short)
		if r := e.claim(ask(k, token), claim.GrantedAgain); r.Attempts != 1 || r.Remaining <= 0 {
			e.Fatalf("granted again with record %+v", r)
		}
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"resent claim after a takeover is in flight", func(e *env) {
		k, first, second := e.key("1"), claim.NewToken(), claim.NewToken()
		e.claim(askShort(k, first), claim.Granted)
		e.pass(short)
		e.claim(ask(k, second), claim.Granted)
		if r := e.claim(ask(k, first), claim.InFlight); r.Token != second {
			e.Fatalf("in flight with record %+v", r)
		}
	}},
	{"renew restarts the lease", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.renew(renewal(k, token), nil)
		e.pass(short)
		if r := e.get(k); r.Lease != long || r.Remaining <= short || r.Attempts != 1 {
			e.Fatalf("renewed: %+v", r)
		}
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"renew may shorten the lease", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		r := renewal(k, token)
		r.Lease = short
		e.renew(r, nil)
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Granted)
	}},
	{"renew of an expired untaken lease", func(e *env) { // look-alike: expired but untaken counts as lost
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.pass(short)
		e.renew(renewal(k, token), nil)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"complete of an expired untaken lease", func(e *env) { // look-alike: expired but untaken counts as lost
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.pass(short)
		e.complete(completion(k, token), claim.Written)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"release of an expired untaken lease", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.pass(short)
		e.release(release(k, token), claim.Released)
		e.state(k, claim.Failed)
	}},
	{"late renew after a takeover is lost", func(e *env) {
		k, first := e.key("1"), claim.NewToken()
		e.claim(askShort(k, first), claim.Granted)
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Granted)
		e.unchanged(k, func() { e.renew(renewal(k, first), claim.ErrLeaseLost) })
	}},
	{"late complete after a takeover is lost", func(e *env) { // look-alike: no fencing
		k, first, second := e.key("1"), claim.NewToken(), claim.NewToken()
		e.claim(askShort(k, first), claim.Granted)
		e.pass(short)
		e.claim(ask(k, second), claim.Granted)
		e.unchanged(k, func() { e.completeFails(completion(k, first), claim.ErrLeaseLost) })
		e.complete(completion(k, second), claim.Written)
		e.unchanged(k, func() { e.completeFails(completion(k, first), claim.ErrProcessedByOther) })
	}},
	{"late release after a takeover is lost", func(e *env) { // look-alike: plain DEL
		k, first := e.key("1"), claim.NewToken()
		e.claim(askShort(k, first), claim.Granted)
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Granted)
		e.unchanged(k, func() { e.releaseFails(release(k, first), claim.ErrLeaseLost) })
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
	}},
	{"late complete after takeover and failure is lost", func(e *env) {
		k, first, second := e.key("1"), claim.NewToken(), claim.NewToken()
		e.claim(askShort(k, first), claim.Granted)
		e.pass(short)
		e.claim(ask(k, second), claim.Granted)
		e.release(release(k, second), claim.Released)
		e.unchanged(k, func() { e.completeFails(completion(k, first), claim.ErrLeaseLost) })
	}},
	{"stranger cannot renew, complete or release a claim", func(e *env) { // look-alike: no fencing
		k, stranger := e.key("1"), claim.NewToken()
		e.claim(ask(k, claim.NewToken()), claim.Granted)
		e.unchanged(k, func() {
			e.renew(renewal(k, stranger), claim.ErrLeaseLost)
			e.completeFails(completion(k, stranger), claim.ErrLeaseLost)
			e.releaseFails(release(k, stranger), claim.ErrLeaseLost)
		})
	}},
	{"stranger cannot renew, complete or release a failed key", func(e *env) {
		k, stranger := e.key("1"), claim.NewToken()
		e.failed(k, claim.NewToken())
		e.unchanged(k, func() {
			e.renew(renewal(k, stranger), claim.ErrLeaseLost)
			e.completeFails(completion(k, stranger), claim.ErrLeaseLost)
			e.releaseFails(release(k, stranger), claim.ErrLeaseLost)
		})
	}},
	{"background release of a refused waiter frees nobody's claim", func(e *env) { // look-alike: no fencing
		k, d1, d2 := e.key("1"), claim.NewToken(), claim.NewToken()
		e.claim(ask(k, d1), claim.Granted)
		e.claim(ask(k, d2), claim.InFlight) // its answer is lost on the way
		e.releaseFails(release(k, d2), claim.ErrLeaseLost)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
		e.complete(completion(k, d1), claim.Written)
	}},
	{"renew where no record is", func(e *env) {
		k := e.key("1")
		e.renew(renewal(k, claim.NewToken()), claim.ErrLeaseLost)
		e.absent(k)
	}},
	{"complete where no record is", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		c := completion(k, token)
		c.Response = []byte("kept")
		e.complete(c, claim.WrittenAnew)
		r := e.state(k, claim.Processed)
		if r.Token != token || r.Attempts != 1 || r.Status != 200 || r.EventType != "charge.paid" || r.FirstSeen.IsZero() ||
			r.BodySHA256 != digest("first body") || string(r.Response) != "kept" {
			e.Fatalf("written anew: %+v", r)
		}
		e.complete(c, claim.AlreadyWritten)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"complete after the record was forgotten", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		if found, err := e.store.Forget(e.ctx(), k); err != nil || !found {
			e.Fatalf("forget: %t, %v", found, err)
		}
		e.renew(renewal(k, token), claim.ErrLeaseLost)
		e.complete(completion(k, token), claim.WrittenAnew)
	}},
}

// finalCases: processed is final.
var finalCases = []testCase{
	{"duplicate is answered with the record", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		c := completion(k, token)
		c.Status, c.Response = 202, []byte("<Response/>")
		e.complete(c, claim.Written)
		r := e.claim(ask(k, claim.NewToken()), claim.Duplicate)
		if r.State != claim.Processed || r.Token != token || r.Status != 202 || string(r.Response) != "<Response/>" ||
			r.Duplicates != 1 || r.Attempts != 1 || r.Lease != 0 || r.Remaining != 0 {
			e.Fatalf("duplicate with record %+v", r)
		}
	}},
	{"duplicates are counted and change nothing else", func(e *env) {
		k := e.key("1")
		e.processed(k, claim.NewToken())
		before := e.get(k)
		e.pass(2 * time.Millisecond)
		for n := range int64(5) {
			c := ask(k, claim.NewToken())
			c.BodySHA256, c.EventType = digest("another body"), "another type"
			if r := e.claim(c, claim.Duplicate); r.Duplicates != n+1 {
				e.Fatalf("duplicate %d was counted as %d", n+1, r.Duplicates)
			}
		}
		before.Duplicates = 5
		if diff := differ(before, e.get(k)); diff != "" {
			e.Fatalf("a duplicate changed the record: %s", diff)
		}
	}},
	{"processed by this token", func(e *env) { // look-alike: same answer always
		k, token := e.key("1"), claim.NewToken()
		e.processed(k, token)
		e.unchanged(k, func() {
			if r := e.claim(ask(k, token), claim.ProcessedBySelf); r.State != claim.Processed || r.Duplicates != 0 {
				e.Fatalf("processed by itself with record %+v", r)
			}
		})
	}},
	{"ghost of the claim does not bring processing back", func(e *env) { // look-alike: same answer always
		k, token := e.key("1"), claim.NewToken()
		e.claim(askShort(k, token), claim.Granted)
		e.complete(completion(k, token), claim.Written)
		e.claim(askShort(k, token), claim.ProcessedBySelf)
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"release does not undo its own processed", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.processed(k, token)
		e.unchanged(k, func() { e.releaseFails(release(k, token), claim.ErrProcessedBySelf) })
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"release by a stranger does not undo processed", func(e *env) { // look-alike: plain DEL
		k := e.key("1")
		e.processed(k, claim.NewToken())
		e.unchanged(k, func() { e.releaseFails(release(k, claim.NewToken()), claim.ErrLeaseLost) })
	}},
	{"renew does not undo its own processed", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.processed(k, token)
		e.unchanged(k, func() { e.renew(renewal(k, token), claim.ErrProcessedBySelf) })
	}},
	{"renew by a stranger does not undo processed", func(e *env) {
		k := e.key("1")
		e.processed(k, claim.NewToken())
		e.unchanged(k, func() {
			if err := e.store.Renew(e.ctx(), renewal(k, claim.NewToken())); !is(err, claim.ErrLeaseLost) && !is(err, claim.ErrProcessedByOther) {
				e.Fatalf("renew: %v, want a lost lease", err)
			}
		})
	}},
	{"complete by another token tells whose completion stands", func(e *env) {
		k := e.key("1")
		e.processed(k, claim.NewToken())
		c := completion(k, claim.NewToken())
		c.Status, c.Response = 299, []byte("other")
		e.unchanged(k, func() { e.completeFails(c, claim.ErrProcessedByOther) })
	}},
	{"processed outlives the lease and the keep of its claim", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		c := askShort(k, token)
		c.Keep = c.Lease
		for i := range 20 {
			start := time.Now()
			e.claim(c, claim.Granted)
			got, err := e.store.Complete(e.ctx(), completion(k, token))
			if err != nil || got != claim.Written && !e.late(start, short) {
				e.Fatalf("complete: %s, %v", completeWord(got), err)
			}
			if got == claim.Written {
				break
			}
			k = e.key(string(rune('a' + i)))
			c.Key = k
		}
		e.pass(short)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"processed ends with its TTL", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		c := completion(k, token)
		c.TTL = short
		e.complete(c, claim.Written)
		e.pass(short)
		e.absent(k)
		if r := e.claim(ask(k, token), claim.Granted); r.Attempts != 1 || r.Duplicates != 0 || r.Response != nil || r.Status != 0 {
			e.Fatalf("a new life starts with record %+v", r)
		}
	}},
}

// repeatCases: operations repeated, applied late, or in the wrong order.
var repeatCases = []testCase{
	{"complete repeated", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.processed(k, token)
		c := completion(k, token)
		c.Status, c.Response = 299, []byte("second answer")
		e.unchanged(k, func() { e.complete(c, claim.AlreadyWritten) })
	}},
	{"release repeated", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.failed(k, token)
		r := release(k, token)
		r.Status = 599
		e.unchanged(k, func() { e.release(r, claim.AlreadyReleased) })
	}},
	{"released token is refused", func(e *env) { // look-alike: release while the same claim is being resent
		k, token := e.key("1"), claim.NewToken()
		e.failed(k, token)
		e.unchanged(k, func() { e.claim(ask(k, token), claim.Refused) })
		e.claim(ask(k, claim.NewToken()), claim.Granted)
	}},
	{"release racing a resent claim frees nobody else", func(e *env) { // look-alike: release while the same claim is being resent
		k, t, next := e.key("1"), claim.NewToken(), claim.NewToken()
		e.claim(ask(k, t), claim.Granted)
		e.release(release(k, t), claim.Released)
		e.claim(ask(k, t), claim.Refused) // the resend
		e.claim(ask(k, next), claim.Granted)
		e.claim(ask(k, t), claim.InFlight)
		e.releaseFails(release(k, t), claim.ErrLeaseLost) // the release once more
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
		e.complete(completion(k, next), claim.Written)
	}},
	{"renew does not revive failed", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.failed(k, token)
		e.unchanged(k, func() { e.renew(renewal(k, token), claim.ErrLeaseLost) })
		e.claim(ask(k, claim.NewToken()), claim.Granted)
	}},
	{"complete after its own release is lost", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.failed(k, token)
		e.unchanged(k, func() { e.completeFails(completion(k, token), claim.ErrLeaseLost) })
	}},
	{"release applied before its claim", func(e *env) { // look-alike: release sent later but applied earlier
		k, token := e.key("1"), claim.NewToken()
		e.release(release(k, token), claim.Voided)
		if r := e.state(k, claim.Failed); r.Attempts != 0 || r.Token != token {
			e.Fatalf("a voided token left %+v", r)
		}
		e.unchanged(k, func() { e.claim(ask(k, token), claim.Refused) })
		if r := e.claim(ask(k, claim.NewToken()), claim.Granted); r.Attempts != 1 || r.BodySHA256 != digest("first body") {
			e.Fatalf("the retry was granted with record %+v", r)
		}
	}},
	{"release of a voided token repeated", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.release(release(k, token), claim.Voided)
		e.unchanged(k, func() {
			e.release(release(k, token), claim.AlreadyReleased)
			e.releaseFails(release(k, claim.NewToken()), claim.ErrLeaseLost)
			e.completeFails(completion(k, token), claim.ErrLeaseLost)
			e.renew(renewal(k, token), claim.ErrLeaseLost)
		})
	}},
	{"late release after the next claim completed", func(e *env) {
		k, first, second := e.key("1"), claim.NewToken(), claim.NewToken()
		e.failed(k, first)
		e.processed(k, second)
		e.unchanged(k, func() { e.releaseFails(release(k, first), claim.ErrLeaseLost) })
	}},
	{"claim with a released token while another holds the key", func(e *env) {
		k, first, second := e.key("1"), claim.NewToken(), claim.NewToken()
		e.failed(k, first)
		e.claim(ask(k, second), claim.Granted)
		e.unchanged(k, func() { e.claim(ask(k, first), claim.InFlight) })
	}},
	{"renew before its claim leaves nothing", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.renew(renewal(k, token), claim.ErrLeaseLost)
		if r := e.claim(ask(k, token), claim.Granted); r.Attempts != 1 {
			e.Fatalf("attempt %d", r.Attempts)
		}
	}},
	{"complete applied before its resent claim", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.complete(completion(k, token), claim.WrittenAnew)
		e.claim(ask(k, token), claim.ProcessedBySelf)
	}},
}

// retentionCases: no record without an end, and none that ends too early.
var retentionCases = []testCase{
	{"keep ends a claim", func(e *env) {
		k := e.key("1")
		c := askShort(k, claim.NewToken())
		c.Keep = c.Lease
		e.claim(c, claim.Granted)
		e.pass(short)
		e.absent(k)
		if r := e.claim(ask(k, claim.NewToken()), claim.Granted); r.Attempts != 1 {
			e.Fatalf("attempt %d of a new record", r.Attempts)
		}
	}},
	{"keep ends a claim that was granted again", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		c := askShort(k, token)
		c.Keep = c.Lease
		e.claim(ask(k, token), claim.Granted)
		e.claim(c, claim.GrantedAgain)
		e.pass(short)
		e.absent(k)
	}},
	{"keep ends a claim that was taken over", func(e *env) {
		k := e.key("1")
		e.claim(askShort(k, claim.NewToken()), claim.Granted)
		e.pass(short)
		c := askShort(k, claim.NewToken())
		c.Keep = c.Lease
		e.claim(c, claim.Granted)
		e.pass(short)
		e.absent(k)
	}},
	{"keep ends a renewed claim", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		e.renew(claim.Renewal{Key: k, Token: token, Lease: short, Keep: short}, nil)
		e.pass(short)
		e.absent(k)
	}},
	{"keep ends a failed record", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		r := release(k, token)
		r.Keep = short
		e.release(r, claim.Released)
		e.pass(short)
		e.absent(k)
	}},
	{"keep ends a voided token", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		r := release(k, token)
		r.Keep = short
		e.release(r, claim.Voided)
		e.pass(short)
		e.absent(k)
	}},
	{"TTL ends a record written anew", func(e *env) {
		k := e.key("1")
		c := completion(k, claim.NewToken())
		c.TTL = short
		e.complete(c, claim.WrittenAnew)
		e.pass(short)
		e.absent(k)
	}},
	{"duplicate does not extend the TTL", func(e *env) {
		k := e.key("1")
		c := completion(k, claim.NewToken())
		c.TTL = 2 * short
		e.complete(c, claim.WrittenAnew)
		start := time.Now()
		if got, _, err := e.store.Claim(e.ctx(), ask(k, claim.NewToken())); err != nil || got != claim.Duplicate && !e.late(start, c.TTL) {
			e.Fatalf("claim: %s, %v", got, err)
		} else if got != claim.Duplicate {
			return
		}
		e.pass(2 * short)
		e.absent(k)
	}},
	{"in flight does not extend the keep", func(e *env) {
		k := e.key("1")
		c := askShort(k, claim.NewToken())
		c.Keep = c.Lease
		e.claim(c, claim.Granted)
		start := time.Now()
		if got, _, err := e.store.Claim(e.ctx(), ask(k, claim.NewToken())); err != nil || got != claim.InFlight && !e.late(start, short) {
			e.Fatalf("claim: %s, %v", got, err)
		} else if got != claim.InFlight {
			return
		}
		e.pass(short)
		e.absent(k)
	}},
	{"renew extends the keep", func(e *env) {
		for i := range 20 {
			k, token := e.key(string(rune('a'+i))), claim.NewToken()
			c := askShort(k, token)
			c.Keep = c.Lease
			start := time.Now()
			e.claim(c, claim.Granted)
			err := e.store.Renew(e.ctx(), renewal(k, token))
			if e.late(start, short) {
				continue
			}
			if err != nil {
				e.Fatalf("renew: %v", err)
			}
			e.pass(short)
			e.state(k, claim.Processing)
			return
		}
	}},
	{"expired lease outlives its end by the keep", func(e *env) {
		k := e.key("1")
		e.claim(askShort(k, claim.NewToken()), claim.Granted)
		e.pass(short)
		if r := e.state(k, claim.Processing); r.Attempts != 1 || r.Remaining != 0 || r.Lease != short {
			e.Fatalf("after its lease: %+v", r)
		}
	}},
	{"release after the retention is over voids", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		c := askShort(k, token)
		c.Keep = c.Lease
		e.claim(c, claim.Granted)
		e.pass(short)
		e.release(release(k, token), claim.Voided)
	}},
	{"complete after the retention is over is never thrown away", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		c := askShort(k, token)
		c.Keep = c.Lease
		e.claim(c, claim.Granted)
		e.pass(short)
		e.complete(completion(k, token), claim.WrittenAnew)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
	{"very long retention", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		const century = 100 * 365 * 24 * time.Hour
		c := ask(k, token)
		c.Lease, c.Keep = century, century
		e.claim(c, claim.Granted)
		e.claim(ask(k, claim.NewToken()), claim.InFlight)
		done := completion(k, token)
		done.TTL = century
		e.complete(done, claim.Written)
		e.claim(ask(k, claim.NewToken()), claim.Duplicate)
	}},
}
