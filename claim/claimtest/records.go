package claimtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

// recordCases: what a record keeps.
var recordCases = []testCase{
	{"everything is kept", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		r := e.state(k, claim.Processing)
		if r.Token != token || r.Attempts != 1 || r.EventType != "charge.paid" || r.Status != 0 || r.Response != nil ||
			r.OriginalID != "the beginning of a long ID" ||
			r.BodySHA256 != digest("first body") || r.Lease != long || r.Remaining <= 0 || r.Duplicates != 0 {
			e.Fatalf("claimed: %+v", r)
		}
		e.release(release(k, token), claim.Released)
		if r = e.state(k, claim.Failed); r.Status != 500 || r.Lease != 0 || r.Remaining != 0 || r.BodySHA256 != digest("first body") {
			e.Fatalf("released: %+v", r)
		}
		token = claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		c := completion(k, token)
		c.Status, c.Response = 201, []byte("made")
		e.complete(c, claim.Written)
		r = e.state(k, claim.Processed)
		if r.OriginalID != "the beginning of a long ID" || r.Token != token || r.Attempts != 2 || r.EventType != "charge.paid" || r.Status != 201 || string(r.Response) != "made" ||
			r.BodySHA256 != digest("first body") || r.Lease != 0 || r.Remaining != 0 {
			e.Fatalf("completed: %+v", r)
		}
	}},
	{"first seen and attempts survive failures", func(e *env) {
		k := e.key("1")
		var first, last time.Time
		for n := range 5 {
			token := claim.NewToken()
			r := e.claim(ask(k, token), claim.Granted)
			if n == 0 {
				first, last = r.FirstSeen, r.Updated
			}
			if r.Attempts != n+1 || !r.FirstSeen.Equal(first) || r.Updated.Before(last) {
				e.Fatalf("attempt %d: %+v", n+1, r)
			}
			last = r.Updated
			e.pass(5 * time.Millisecond)
			e.release(release(k, token), claim.Released)
		}
		r := e.get(k)
		if !r.Updated.After(first) || r.Attempts != 5 {
			e.Fatalf("after five failures: %+v", r)
		}
	}},
	{"times are the store's, to the millisecond", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		claimed := e.claim(ask(k, token), claim.Granted)
		e.pass(20 * time.Millisecond)
		e.renew(renewal(k, token), nil)
		renewed := e.get(k)
		e.pass(20 * time.Millisecond)
		e.complete(completion(k, token), claim.Written)
		done := e.get(k)
		for _, r := range []claim.Record{claimed, renewed, done} {
			if !r.FirstSeen.Equal(claimed.FirstSeen) || !r.FirstSeen.Equal(r.FirstSeen.Truncate(time.Millisecond)) {
				e.Fatalf("first seen became %s, was %s", r.FirstSeen, claimed.FirstSeen)
			}
		}
		if renewed.Updated.Sub(claimed.Updated) < 20*time.Millisecond || done.Updated.Sub(renewed.Updated) < 20*time.Millisecond {
			e.Fatalf("last changes at %s, %s, %s", claimed.Updated, renewed.Updated, done.Updated)
		}
	}},
	{"digest of the first delivery is kept", func(e *env) {
		k := e.key("1")
		e.failed(k, claim.NewToken())
		token := claim.NewToken()
		c := ask(k, token)
		c.BodySHA256 = digest("a changed body")
		if r := e.claim(c, claim.Granted); r.BodySHA256 != digest("first body") {
			e.Fatalf("the claim was answered with another digest")
		}
		done := completion(k, token)
		done.BodySHA256 = digest("a changed body")
		e.complete(done, claim.Written)
		if e.get(k).BodySHA256 != digest("first body") {
			e.Fatalf("the first digest is gone")
		}
		if r := e.claim(ask(k, claim.NewToken()), claim.Duplicate); r.BodySHA256 != digest("first body") {
			e.Fatalf("the duplicate was answered with another digest")
		}
	}},
	{"digests of any bytes", func(e *env) {
		for i, d := range [][32]byte{{}, {0, 1}, {31: 1}, {255, 254, '\r', '\n', '*', '$'}} {
			k := e.key(string(rune('a' + i)))
			c := ask(k, claim.NewToken())
			c.BodySHA256 = d
			if r := e.claim(c, claim.Granted); r.BodySHA256 != d || e.get(k).BodySHA256 != d {
				e.Fatalf("digest %x became %x", d, r.BodySHA256)
			}
		}
	}},
	{"event types of any bytes", func(e *env) {
		for i, word := range []string{"", "a", "ä b", "\x00\xff\r\n", string(bytes.Repeat([]byte("x"), 300))} {
			k, token := e.key(string(rune('a'+i))), claim.NewToken()
			c := ask(k, token)
			c.EventType = word
			if r := e.claim(c, claim.Granted); r.EventType != word || e.get(k).EventType != word {
				e.Fatalf("event type %q became %q", word, r.EventType)
			}
		}
	}},
	{"event type is kept where a later call has none", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		c := completion(k, token)
		c.EventType = ""
		e.complete(c, claim.Written)
		if got := e.get(k).EventType; got != "charge.paid" {
			e.Fatalf("event type became %q", got)
		}
	}},
	{"responses of any bytes", func(e *env) {
		all := make([]byte, 64<<10)
		for i := range all {
			all[i] = byte(i * 7)
		}
		for i, body := range [][]byte{{0}, []byte("\x00\r\n\xff"), []byte("nil"), bytes.Repeat([]byte{0}, 65), all} {
			k, token := e.key(string(rune('a'+i))), claim.NewToken()
			e.claim(ask(k, token), claim.Granted)
			c := completion(k, token)
			c.Response = body
			e.complete(c, claim.Written)
			if r := e.claim(ask(k, claim.NewToken()), claim.Duplicate); !bytes.Equal(r.Response, body) {
				e.Fatalf("a response of %d bytes came back with %d", len(body), len(r.Response))
			}
			if !bytes.Equal(e.get(k).Response, body) {
				e.Fatalf("a response of %d bytes was not kept", len(body))
			}
		}
	}},
	{"empty response is none", func(e *env) {
		for i, body := range [][]byte{nil, {}} {
			k, token := e.key(string(rune('a'+i))), claim.NewToken()
			e.claim(ask(k, token), claim.Granted)
			c := completion(k, token)
			c.Response = body
			e.complete(c, claim.Written)
			if r := e.claim(ask(k, claim.NewToken()), claim.Duplicate); r.Response != nil || e.get(k).Response != nil {
				e.Fatalf("a response came from nowhere: %q", r.Response)
			}
		}
	}},
	{"get changes nothing", func(e *env) {
		e.absent(e.key("1"))
		e.absent(e.key("1"))
		for id, make := range map[string]func(string, claim.Token){"2": e.processed, "3": e.failed} {
			make(e.key(id), claim.NewToken())
			e.unchanged(e.key(id), func() { e.get(e.key(id)) })
		}
	}},
}

// adminCases: what operators do.
var adminCases = []testCase{
	{"forget removes a record in any state", func(e *env) {
		e.claim(ask(e.key("1"), claim.NewToken()), claim.Granted)
		e.processed(e.key("2"), claim.NewToken())
		e.failed(e.key("3"), claim.NewToken())
		e.release(release(e.key("4"), claim.NewToken()), claim.Voided)
		for _, id := range []string{"1", "2", "3", "4"} {
			for _, want := range []bool{true, false} {
				if found, err := e.store.Forget(e.ctx(), e.key(id)); err != nil || found != want {
					e.Fatalf("forget: %t, %v, want %t", found, err, want)
				}
				e.absent(e.key(id))
			}
			if r := e.claim(ask(e.key(id), claim.NewToken()), claim.Granted); r.Attempts != 1 {
				e.Fatalf("attempt %d after forget", r.Attempts)
			}
		}
	}},
	{"forget does not find what has expired", func(e *env) {
		k := e.key("1")
		c := completion(k, claim.NewToken())
		c.TTL = short
		e.complete(c, claim.WrittenAnew)
		e.pass(short)
		if found, err := e.store.Forget(e.ctx(), k); err != nil || found {
			e.Fatalf("forget: %t, %v, want none", found, err)
		}
	}},
	{"list filters", func(e *env) {
		e.claim(ask(e.key("evt_1"), claim.NewToken()), claim.Granted)
		e.processed(e.key("evt_2"), claim.NewToken())
		e.processed(e.key("evt_2:part"), claim.NewToken())
		e.failed(e.key("evt_3"), claim.NewToken())
		odd := claim.Key{Environment: "test", Provider: e.provider, Scope: "h[o]s*t?", EventID: "evt_4"}.String()
		e.processed(odd, claim.NewToken())
		prefix := "test:" + e.provider + ":"
		for _, c := range []struct {
			query claim.Query
			want  []string
		}{
			{claim.Query{Provider: e.provider}, []string{e.key("evt_1"), e.key("evt_2"), e.key("evt_2:part"), e.key("evt_3"), odd}},
			{claim.Query{Provider: e.provider, State: claim.Processing}, []string{e.key("evt_1")}},
			{claim.Query{Provider: e.provider, State: claim.Processed}, []string{e.key("evt_2"), e.key("evt_2:part"), odd}},
			{claim.Query{Provider: e.provider, State: claim.Failed}, []string{e.key("evt_3")}},
			{claim.Query{Provider: e.provider, EventID: "evt_2"}, []string{e.key("evt_2")}},
			{claim.Query{Provider: e.provider, EventID: "evt_2:part"}, []string{e.key("evt_2:part")}},
			{claim.Query{Provider: e.provider, EventID: "part"}, nil},
			{claim.Query{Provider: "another"}, nil},
			{claim.Query{Prefix: prefix + "h[o]s*"}, []string{odd}},
			{claim.Query{Prefix: prefix + "h*"}, nil},
			{claim.Query{Prefix: prefix + "host/path:evt_2"}, []string{e.key("evt_2"), e.key("evt_2:part")}},
			{claim.Query{Prefix: e.key("evt_3"), EventID: "evt_3"}, []string{e.key("evt_3")}},
			{claim.Query{Prefix: e.key("evt_3"), State: claim.Processed}, nil},
			{claim.Query{Prefix: prefix + "x"}, nil},
		} {
			got := e.list(c.query)
			for _, k := range c.want {
				if r, ok := got[k]; !ok {
					e.Errorf("list %+v: %q is missing", c.query, k)
				} else if diff := differ(e.get(k), r); diff != "" {
					e.Errorf("list %+v: %q: %s", c.query, k, diff)
				}
				delete(got, k)
			}
			for k := range got {
				e.Errorf("list %+v: %q is too much", c.query, k)
			}
		}
	}},
	{"list pages through several hundred records", func(e *env) {
		const n = 400
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < n; i += 8 {
					if _, err := e.store.Complete(e.ctx(), completion(e.key(fmt.Sprint("evt_", i)), claim.NewToken())); err != nil {
						e.Errorf("complete: %v", err)
					}
				}
			})
		}
		wg.Wait()
		for _, limit := range []int{0, 1, 7, 100, 1000, 5000} {
			want := n
			if limit == 1 {
				want = 11 // one a page: evt_1 and evt_10 to evt_19 are enough
			}
			q := claim.Query{Provider: e.provider, Limit: limit}
			if limit == 1 {
				q = claim.Query{Prefix: "test:" + e.provider + ":host/path:evt_1", Limit: 1}
				want = 1 + 10 + 100
			}
			if got := e.list(q); len(got) != want {
				e.Errorf("limit %d: %d records, want %d", limit, len(got), want)
			}
		}
		if got := e.list(claim.Query{Provider: e.provider, EventID: "evt_123", Limit: 3}); len(got) != 1 {
			e.Errorf("found %d records of one event", len(got))
		}
	}},
	{"list finds what stays while other records come and go", func(e *env) {
		for i := range 100 {
			e.processed(e.key(fmt.Sprint("stays_", i)), claim.NewToken())
		}
		found := map[string]bool{}
		q := claim.Query{Provider: e.provider, Limit: 10}
		for page := range 10000 {
			p, err := e.store.List(e.ctx(), q)
			if err != nil {
				e.Fatalf("list: %v", err)
			}
			for _, r := range p.Records {
				found[r.Key] = true
			}
			if q.Cursor = p.Cursor; p.Cursor == "" {
				break
			}
			k := e.key(fmt.Sprint("comes_", page%20))
			if page%40 < 20 {
				e.complete(completion(k, claim.NewToken()), claim.WrittenAnew)
			} else if _, err := e.store.Forget(e.ctx(), k); err != nil {
				e.Fatalf("forget: %v", err)
			}
		}
		for i := range 100 {
			if k := e.key(fmt.Sprint("stays_", i)); !found[k] {
				e.Errorf("%q was missed", k)
			}
		}
	}},
	{"list leaves out what has expired", func(e *env) {
		c := completion(e.key("1"), claim.NewToken())
		c.TTL = short
		e.complete(c, claim.WrittenAnew)
		e.pass(short)
		if got := e.list(claim.Query{Provider: e.provider}); len(got) != 0 {
			e.Fatalf("listed %v", got)
		}
	}},
	{"list refuses a cursor that it did not give out", func(e *env) {
		if _, err := e.store.List(e.ctx(), claim.Query{Cursor: "!no cursor!"}); err == nil {
			e.Fatalf("no error")
		}
	}},
	{"stats count by provider and state", func(e *env) {
		if s := e.stats(); len(s.Counts[e.provider]) != 0 {
			e.Fatalf("counted %v before the first record", s.Counts[e.provider])
		}
		held := e.claim(ask(e.key("1"), claim.NewToken()), claim.Granted)
		for i := range 3 {
			e.processed(e.key(fmt.Sprint("p", i)), claim.NewToken())
		}
		e.failed(e.key("f1"), claim.NewToken())
		e.failed(e.key("f2"), claim.NewToken())
		s := e.stats()
		got := s.Counts[e.provider]
		if got[claim.Processing] != 1 || got[claim.Processed] != 3 || got[claim.Failed] != 2 {
			e.Fatalf("counted %v", got)
		}
		if s.OldestProcessing.IsZero() || s.OldestProcessing.After(held.Updated) {
			e.Fatalf("oldest claim of %s, one is of %s", s.OldestProcessing, held.Updated)
		}
	}},
	{"ping", func(e *env) {
		if err := e.store.Ping(e.ctx()); err != nil {
			e.Fatalf("ping: %v", err)
		}
	}},
}

// list collects all pages of q and checks that none is longer than its limit.
func (e *env) list(q claim.Query) map[string]claim.Record {
	e.Helper()
	all := map[string]claim.Record{}
	for range 100_000 {
		p, err := e.store.List(e.ctx(), q)
		if err != nil {
			e.Fatalf("list: %v", err)
		}
		if len(p.Records) > q.Bounded().Limit {
			e.Fatalf("a page of %d records, the limit is %d", len(p.Records), q.Bounded().Limit)
		}
		for _, r := range p.Records {
			if !q.Matches(r) {
				e.Fatalf("list %+v: %q (%s) does not match", q, r.Key, r.State)
			}
			all[r.Key] = r
		}
		if q.Cursor = p.Cursor; p.Cursor == "" {
			return all
		}
	}
	e.Fatalf("list never ends")
	return nil
}

func (e *env) stats() claim.Stats {
	e.Helper()
	s, err := e.store.Stats(e.ctx())
	if err != nil {
		e.Fatalf("stats: %v", err)
	}
	return s
}

// argumentCases: calls that are wrong, and calls that come too late.
var argumentCases = []testCase{
	{"arguments out of bounds change nothing", func(e *env) {
		k, token := e.key("1"), claim.NewToken()
		e.claim(ask(k, token), claim.Granted)
		for _, c := range []struct{ lease, keep time.Duration }{
			{0, long}, {-time.Second, long}, {time.Microsecond, long}, {long, long - 1}, {long, 0}, {long, -long},
			{math.MinInt64, long}, {math.MaxInt64, long},
		} {
			for _, who := range []claim.Token{token, claim.NewToken()} {
				e.unchanged(k, func() {
					if got, _, err := e.store.Claim(e.ctx(), claim.Claim{Key: k, Token: who, Lease: c.lease, Keep: c.keep}); err == nil {
						e.Fatalf("claim with lease %s, keep %s: %s", c.lease, c.keep, got)
					}
					err := e.store.Renew(e.ctx(), claim.Renewal{Key: k, Token: who, Lease: c.lease, Keep: c.keep})
					if err == nil || errors.Is(err, claim.ErrLeaseLost) {
						e.Fatalf("renew with lease %s, keep %s: %v", c.lease, c.keep, err)
					}
				})
			}
		}
		for _, d := range []time.Duration{0, -time.Second, time.Microsecond, math.MinInt64} {
			e.unchanged(k, func() {
				if got, err := e.store.Complete(e.ctx(), claim.Completion{Key: k, Token: token, TTL: d}); err == nil {
					e.Fatalf("complete with TTL %s: %s", d, completeWord(got))
				}
				if got, err := e.store.Release(e.ctx(), claim.Release{Key: k, Token: token, Keep: d}); err == nil {
					e.Fatalf("release with keep %s: %s", d, releaseWord(got))
				}
			})
		}
		fresh := e.key("2")
		if _, _, err := e.store.Claim(e.ctx(), claim.Claim{Key: fresh, Token: token, Lease: long, Keep: short}); err == nil {
			e.Fatalf("claim with a keep under its lease")
		}
		if _, err := e.store.Complete(e.ctx(), claim.Completion{Key: fresh, Token: token}); err == nil {
			e.Fatalf("complete without TTL")
		}
		if _, err := e.store.Release(e.ctx(), claim.Release{Key: fresh, Token: token}); err == nil {
			e.Fatalf("release without keep")
		}
		e.absent(fresh)
	}},
	{"no key or too long a key is an error", func(e *env) {
		for _, k := range []string{"", string(make([]byte, claim.MaxKey+1))} {
			for name, err := range e.every(context.Background(), k) {
				if err == nil || errors.Is(err, claim.ErrNotFound) || errors.Is(err, claim.ErrLeaseLost) {
					e.Errorf("%s of a key of %d bytes: %v", name, len(k), err)
				}
			}
		}
	}},
	{"cancelled context is an error at once", func(e *env) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.refuses(ctx)
	}},
	{"context past its deadline is an error at once", func(e *env) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		e.refuses(ctx)
	}},
}

// refuses calls every operation with a context that is done.
func (e *env) refuses(ctx context.Context) {
	e.Helper()
	k := e.key("1")
	e.processed(k, claim.NewToken())
	start := time.Now()
	errs := e.every(ctx, k)
	if took := time.Since(start); took > opTimeout/3 {
		e.Errorf("%d operations took %s", len(errs), took)
	}
	errs["list"] = func() error { _, err := e.store.List(ctx, claim.Query{}); return err }()
	errs["stats"] = func() error { _, err := e.store.Stats(ctx); return err }()
	errs["ping"] = e.store.Ping(ctx)
	for name, err := range errs {
		if err == nil {
			e.Errorf("%s: no error", name)
		} else if errors.Is(err, claim.ErrLeaseLost) || errors.Is(err, claim.ErrProcessedBySelf) || errors.Is(err, claim.ErrNotFound) {
			e.Errorf("%s: %v, an answer of the protocol", name, err)
		}
	}
}

// every calls each operation on key with arguments that are good otherwise.
func (e *env) every(ctx context.Context, key string) map[string]error {
	token, errs := claim.NewToken(), map[string]error{}
	_, _, errs["claim"] = e.store.Claim(ctx, ask(key, token))
	errs["renew"] = e.store.Renew(ctx, renewal(key, token))
	_, errs["complete"] = e.store.Complete(ctx, completion(key, token))
	_, errs["release"] = e.store.Release(ctx, release(key, token))
	_, errs["get"] = e.store.Get(ctx, key)
	_, errs["forget"] = e.store.Forget(ctx, key)
	return errs
}
