package webhookdedup

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// expectation is the outcome that `send` checks for.
type expectation string

const (
	expectOnce      expectation = "once"      // one delivery processed, the others duplicates
	expectRefused   expectation = "refused"   // all refused for their signature
	expectDuplicate expectation = "duplicate" // all duplicates: it was processed before
)

// sendVerdict is whether an outcome is the expected one, in words, with what may have been the reason where it is not.
type sendVerdict struct {
	ok    bool
	text  string
	hints []string
}

// tally counts what deliveries were told.
type tally struct {
	all, processed, duplicate, refused, silent, unanswered int
	results                                                []string // in order of appearance, each once
}

func count(attempts []attempt) tally {
	t := tally{all: len(attempts)}
	for _, a := range attempts {
		acknowledged := a.err == nil && a.status >= 200 && a.status <= 299
		switch {
		case a.status == 0:
			t.unanswered++
			continue
		case a.result == "":
			t.silent++
		case acknowledged && a.result == string(resultProcessed):
			t.processed++
		case acknowledged && a.result == string(resultDuplicate):
			t.duplicate++
		case a.err == nil && a.status == http.StatusUnauthorized && a.result == string(resultInvalidSignature):
			t.refused++
		}
		if a.result != "" && !slices.Contains(t.results, a.result) {
			t.results = append(t.results, a.result)
		}
	}
	return t
}

func (e expectation) judge(attempts []attempt) sendVerdict {
	t := count(attempts)
	var v sendVerdict
	if t.all == 0 {
		return sendVerdict{text: "FAILED: nothing was sent"}
	}
	switch e {
	case expectRefused:
		if v.ok = t.refused == t.all; v.ok {
			v.text = "OK: refused with 401, as it must be"
			if t.all > 1 {
				v.text = fmt.Sprintf("OK: all %d were refused with 401, as they must be", t.all)
			}
			return v
		}
		v.text = fmt.Sprintf("FAILED: expected every delivery to be refused with 401 invalid_signature, and %d of %d were", t.refused, t.all)
	case expectDuplicate:
		if v.ok = t.duplicate == t.all; v.ok {
			v.text = "OK: the event was processed before; " + plural(t.all, "delivery", "deliveries") + " answered as duplicate"
			return v
		}
		v.text = fmt.Sprintf("FAILED: expected every delivery to be a duplicate, and %d of %d were", t.duplicate, t.all)
	default:
		if v.ok = t.processed == 1 && t.duplicate == t.all-1; v.ok {
			v.text = "OK: exactly one was processed, " + plural(t.duplicate, "was a duplicate", "were duplicates")
			if t.all == 1 {
				v.text = "OK: it was processed"
			}
			return v
		}
		v.text = fmt.Sprintf("FAILED: expected 1 processed and %d duplicate, got %d processed and %d duplicate", t.all-1, t.processed, t.duplicate)
	}
	v.hints = e.hints(t, attempts)
	return v
}

// hints say what usually is the reason.
func (e expectation) hints(t tally, attempts []attempt) []string {
	var hints []string
	add := func(when bool, hint string) {
		if when {
			hints = append(hints, hint)
		}
	}
	has := func(r result) bool { return slices.Contains(t.results, string(r)) }
	hungUp := slices.ContainsFunc(attempts, func(a attempt) bool { return errors.Is(a.err, errHungUp) })
	add(t.silent > 0, "No Webhook-Dedup header in an answer: it did not come through webhook_dedup. Does the URL lead to a route that has it?")
	add(slices.ContainsFunc(t.results, func(r string) bool { return strings.HasPrefix(r, "observe") }),
		"The endpoint is in mode observe: every delivery reaches the application, whatever it is.")
	add(e == expectOnce && t.processed == 0 && t.duplicate == t.all,
		"The event was processed before this command ran. Use a fresh --id, or --expect duplicate.")
	add(e != expectRefused && has(resultInvalidSignature),
		"The signature was refused. Is it the endpoint's secret, and is the provider the endpoint's? A different public URL matters where the URL is signed.")
	add(e == expectRefused && t.processed+t.duplicate > 0,
		"A delivery that should have been refused was accepted: is the signature switched off, or a tolerance of its own set, at the endpoint?")
	add(has(resultFailed), "The application did not acknowledge the event, so it may be delivered again.")
	add(has(resultInFlight), "A delivery found another one still being processed, and was not let through: see in_flight at the endpoint.")
	add(has(resultStoreError) || has(resultUnguarded), "The store does not work: see Caddy's log.")
	add(has(resultPassed), "The delivery was forwarded without a claim: no event ID was found in it, or it is a handshake.")
	untrusted := slices.ContainsFunc(attempts, func(a attempt) bool {
		_, ok := errors.AsType[*tls.CertificateVerificationError](a.err)
		return ok
	})
	add(untrusted, "The server's certificate is not trusted here. For a certificate of one's own there is --insecure.")
	add(hungUp, "No answer in time: the application may be at work still. Look at what a retry with the same --id is told, or set a longer --timeout.")
	return hints
}
