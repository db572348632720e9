//go:build unix

package proof

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		flag.Set("rapid.checks", "30")
	}
	os.Exit(m.Run())
}

const (
	// long outlasts a history, blink is over before its next step.
	long  = time.Hour
	blink = time.Millisecond
	// nap is a little more than a blink.
	nap = 5 * time.Millisecond
)

// TestRandomHistories: whatever comes in whatever order, a store answers like the reference.
func TestRandomHistories(t *testing.T) {
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) {
			open, _ := b.start(t)
			nodes := []claim.Store{open(), open()}
			n, steps := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				h := &history{nodes: nodes, model: reference{records: map[string]record{}}}
				for i := range 2 {
					h.keys = append(h.keys, claim.Key{Environment: "proof", Provider: "p", Scope: "s", EventID: fmt.Sprint(n, "_", i)}.String())
					h.tokens = append(h.tokens, claim.NewToken())
				}
				h.tokens = append(h.tokens, claim.NewToken())
				t.Repeat(map[string]func(*rapid.T){
					"claim": h.claim, "claim again": h.claim, "renew": h.renew, "complete": h.complete, "release": h.release,
					"forget": h.forget, "": func(t *rapid.T) { steps++; h.compare(t) },
				})
			})
			t.Logf("%d histories, %d steps", n, steps)
		})
	}
}

// history is one: a store's, and the reference's.
type history struct {
	nodes  []claim.Store
	model  reference
	keys   []string
	tokens []claim.Token
}

func (h *history) draw(t *rapid.T) (claim.Store, string, claim.Token) {
	return rapid.SampledFrom(h.nodes).Draw(t, "node"), rapid.SampledFrom(h.keys).Draw(t, "key"), rapid.SampledFrom(h.tokens).Draw(t, "token")
}

// spans are a lease and a retention; most often they are long.
func spans(t *rapid.T) (lease, keep time.Duration) {
	switch rapid.IntRange(0, 9).Draw(t, "span") {
	case 0:
		return blink, blink
	case 1, 2:
		return blink, long
	}
	return long, long
}

// passes lets what was for a blink be over, at the store and in the reference.
func (h *history) passes(spans ...time.Duration) {
	for _, d := range spans {
		if d == blink {
			time.Sleep(nap)
			h.model.now += nap
			return
		}
	}
}

func (h *history) claim(t *rapid.T) {
	s, key, token := h.draw(t)
	lease, keep := spans(t)
	c := claim.Claim{
		Key: key, Token: token, Lease: lease, Keep: keep,
		EventType: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "type"), BodySHA256: [32]byte{rapid.Byte().Draw(t, "body")},
	}
	got, r, err := s.Claim(within(30*time.Second), c)
	want, m := h.model.claim(c)
	if err != nil || got != want {
		t.Fatalf("claim: %s, %v, want %s", got, err, want)
	}
	if lease == long {
		if diff := h.model.differ(m, r); diff != "" {
			t.Fatalf("claim: %s: %s", got, diff)
		}
	}
	h.passes(lease, keep)
}

func (h *history) renew(t *rapid.T) {
	s, key, token := h.draw(t)
	lease, keep := spans(t)
	c := claim.Renewal{Key: key, Token: token, Lease: lease, Keep: keep}
	if got, want := s.Renew(within(30*time.Second), c), h.model.renew(c); !same(got, want) {
		t.Fatalf("renew: %v, want %v", got, want)
	}
	h.passes(lease, keep)
}

func (h *history) complete(t *rapid.T) {
	s, key, token := h.draw(t)
	_, ttl := spans(t)
	c := claim.Completion{
		Key: key, Token: token, TTL: ttl, Status: rapid.IntRange(0, 999).Draw(t, "status"), Response: rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "response"),
		EventType: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "type"), BodySHA256: [32]byte{rapid.Byte().Draw(t, "body")},
	}
	got, err := s.Complete(within(30*time.Second), c)
	if want, werr := h.model.complete(c); got != want || !same(err, werr) {
		t.Fatalf("complete: %d, %v, want %d, %v", got, err, want, werr)
	}
	h.passes(ttl)
}

func (h *history) release(t *rapid.T) {
	s, key, token := h.draw(t)
	_, keep := spans(t)
	c := claim.Release{Key: key, Token: token, Keep: keep, Status: rapid.IntRange(0, 999).Draw(t, "status")}
	got, err := s.Release(within(30*time.Second), c)
	if want, werr := h.model.release(c); got != want || !same(err, werr) {
		t.Fatalf("release: %d, %v, want %d, %v", got, err, want, werr)
	}
	h.passes(keep)
}

func (h *history) forget(t *rapid.T) {
	s, key, _ := h.draw(t)
	got, err := s.Forget(within(30*time.Second), key)
	if want := h.model.forget(key); err != nil || got != want {
		t.Fatalf("forget: %t, %v, want %t", got, err, want)
	}
}

// compare holds every record against the reference's.
func (h *history) compare(t *rapid.T) {
	for _, key := range h.keys {
		r, err := h.nodes[0].Get(within(30*time.Second), key)
		if err != nil && !errors.Is(err, claim.ErrNotFound) {
			t.Fatalf("get: %v", err)
		}
		want := h.model.get(key)
		if (err != nil) != (want.state == 0) {
			t.Fatalf("get: %v, the reference has a %s record", err, want.state)
		}
		if diff := h.model.differ(want, r); diff != "" {
			t.Fatalf("get: %s", diff)
		}
	}
}
