package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const head = `# Providers

<!-- Made by go generate in the directory provider, from the catalogue: change that, not this file. -->

What is known of each provider, %d in all: how it signs, what names an event, how it retries, and what receivers get wrong. The name in
the first column is what stands in the configuration. *TTL* is how long a processed event is remembered unless ` + "`ttl`" + ` says otherwise.
*Window* is the time from the first attempt to the last automatic one. *Confidence* is ours in these facts; each section says what was
not confirmed by a source.

`

const (
	matrixBegin = "<!-- conformance matrix: begin -->"
	matrixEnd   = "<!-- conformance matrix: end -->"
	matrixNone  = "The matrix is filled in from `conformance/matrix.json`, which the conformance suite writes."
)

// render writes the page. Without a conformance matrix, what stands between its marks is kept as it was.
func render(before string, results *conformance) string {
	var b strings.Builder
	all := provider.All()
	fmt.Fprintf(&b, head, len(all))
	table(&b, all)
	matrix(&b, before, results)
	unsupported(&b)
	for _, s := range all {
		section(&b, s)
	}
	return b.String()
}

func table(b *strings.Builder, all []provider.Spec) {
	b.WriteString("| id | signature | event ID | window | timeout | TTL | batch | handshakes | confidence |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range all {
		batch := "no"
		if s.Batch != nil {
			batch = code(strings.Join(s.Batch.Paths, ", "))
		}
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s | %s | %s | %s | %s | %s |\n", s.ID, anchor(s), algorithms(s), shortIdentity(s),
			window(s.Retry), known(s.ResponseTimeout, "?"), duration(s.TTL), batch, handshakes(s), s.Confidence)
	}
	b.WriteByte('\n')
}

func matrix(b *strings.Builder, before string, results *conformance) {
	kept := "\n" + matrixNone + "\n"
	if results != nil {
		kept = "\n" + results.table() + "\n"
	} else if _, rest, ok := strings.Cut(before, matrixBegin); ok {
		if inner, _, ok := strings.Cut(rest, matrixEnd); ok {
			kept = inner
		}
	}
	b.WriteString("## Conformance with the providers' own packages\n\n" + matrixBegin + kept + matrixEnd + "\n\n")
}

func unsupported(b *strings.Builder) {
	b.WriteString("## Not supported\n\n")
	for _, g := range provider.Unsupported() {
		fmt.Fprintf(b, "- **%s**, %s: %s\n", g.Provider, g.Name, g.Reason)
	}
	b.WriteByte('\n')
}

func section(b *strings.Builder, s provider.Spec) {
	fmt.Fprintf(b, "## %s\n\n`%s` · [documentation](%s) · confidence: %s\n\n", s.Title, s.ID, s.Docs, s.Confidence)
	for i, scheme := range s.Schemes {
		label := "Signature"
		if i > 0 {
			label = "or"
		}
		fmt.Fprintf(b, "- %s: %s\n", label, signature(scheme))
	}
	if d := tolerance(s); d > 0 {
		fmt.Fprintf(b, "- Tolerance: %s in both directions\n", duration(d))
	}
	if len(s.Methods) > 0 {
		fmt.Fprintf(b, "- Methods: %s\n", strings.Join(s.Methods, ", "))
	}
	fmt.Fprintf(b, "- Event ID: %s\n", identity(s.EventID, s.Fallbacks, s.BodyHashSafe))
	if s.Batch != nil {
		fmt.Fprintf(b, "- Elements of a batch: %s; each by %s\n", code(strings.Join(s.Batch.Paths, ", ")), identity(s.Batch.EventID, s.Batch.Fallbacks, false))
	}
	if len(s.EventType) > 0 {
		fmt.Fprintf(b, "- Type: %s\n", alternatives(s.EventType))
	}
	retry(b, s.Retry)
	fmt.Fprintf(b, "- Waits for an answer: %s; remembered for %s", known(s.ResponseTimeout, "not published"), duration(s.TTL))
	if s.MaxBody > 0 {
		fmt.Fprintf(b, "; bodies up to %s", size(s.MaxBody))
	}
	b.WriteByte('\n')
	if s.Replay {
		b.WriteString("- A duplicate gets the first answer again, body included\n")
	}
	for _, h := range s.Handshakes {
		fmt.Fprintf(b, "- Handshake: %s\n", handshake(h))
	}
	list(b, "Traps", s.Traps)
	list(b, "Unverified", s.Unverified)
	list(b, "Evidence", s.Evidence)
	b.WriteByte('\n')
}

func list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	for _, item := range items {
		fmt.Fprintf(b, "- %s\n", item)
	}
}

func retry(b *strings.Builder, r provider.Retry) {
	fmt.Fprintf(b, "- Retries: %s", r.Schedule)
	if len(r.On) > 0 {
		fmt.Fprintf(b, "; on %s", strings.Join(r.On, ", "))
	}
	if len(r.Except) > 0 {
		fmt.Fprintf(b, ", except %s", strings.Join(r.Except, ", "))
	}
	b.WriteByte('\n')
	if r.Manual != "" {
		fmt.Fprintf(b, "- By hand: %s", r.Manual)
		if r.ManualWindow > 0 {
			fmt.Fprintf(b, "; for %s", duration(r.ManualWindow))
		}
		b.WriteByte('\n')
	}
}

// anchor is how a heading is linked to.
func anchor(s provider.Spec) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s.Title) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

func known(d time.Duration, unknown string) string {
	if d == 0 {
		return unknown
	}
	return duration(d)
}

func window(r provider.Retry) string {
	if !r.Automatic {
		return "no retries"
	}
	return known(r.Window, "?")
}

func duration(d time.Duration) string {
	var parts []string
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if n := d / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			d -= n * u.size
		}
	}
	return strings.Join(parts, " ")
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// code is text as code in a cell of a table.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }
