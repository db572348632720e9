package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func algorithms(s provider.Spec) string {
	var names []string
	for _, scheme := range s.Schemes {
		if !slices.Contains(names, scheme.Algorithm) {
			names = append(names, scheme.Algorithm)
		}
	}
	return strings.Join(names, ", ")
}

func signature(s provider.Scheme) string {
	var b strings.Builder
	b.WriteString(s.Algorithm)
	switch {
	case s.Signature != nil:
		fmt.Fprintf(&b, " in %s", source(*s.Signature))
		if s.Each != "" {
			fmt.Fprintf(&b, " of each element of %s", code(s.Each))
		}
	default:
		fmt.Fprintf(&b, " in %s", code(s.Header))
	}
	if len(s.Also) > 0 {
		fmt.Fprintf(&b, " (or %s", code(s.Also[0]))
		if len(s.Also) > 1 {
			fmt.Fprintf(&b, " … %s", code(s.Also[len(s.Also)-1]))
		}
		b.WriteByte(')')
	}
	if s.Algorithm == "token" || s.Algorithm == "basic" {
		return b.String() + ": the secret itself"
	}
	if s.Prefix != "" {
		fmt.Fprintf(&b, " behind %s", code(s.Prefix))
	}
	if l := s.List; l != nil && l.Assign != "" {
		fmt.Fprintf(&b, ", a list by %s of %s", code(l.Separator), code(strings.Join(l.Names, ", ")+l.Assign+"…"))
	} else if l != nil {
		fmt.Fprintf(&b, ", a list by %s", code(l.Separator))
	}
	switch {
	case s.Algorithm == "jwt-es256":
		fmt.Fprintf(&b, ", whose claim %s is the body's SHA-256", code(s.BodyHash.Name))
	default:
		encoding, content := s.Encoding, s.Content
		if encoding == "" {
			encoding = "hex"
		}
		if content == "" {
			content = "{body}"
		}
		fmt.Fprintf(&b, ", %s, over %s", encoding, code(strings.ReplaceAll(content, "\n", "⏎")))
	}
	if s.BodyHash != nil && s.Algorithm != "jwt-es256" {
		fmt.Fprintf(&b, "; %s is the body's SHA-256", source(*s.BodyHash))
	}
	if t := s.Timestamp; t != nil {
		format := t.Format
		if format == "" {
			format = "unix"
		}
		fmt.Fprintf(&b, "; timestamp: %s %s, %s", t.From, code(t.Name), format)
	}
	for _, w := range s.When {
		fmt.Fprintf(&b, "; where %s", condition(w))
	}
	if s.OnlyHandshakes {
		b.WriteString("; handshakes only")
	}
	return b.String()
}

func tolerance(s provider.Spec) time.Duration {
	c, err := provider.Compile(s)
	if err != nil {
		panic(err) // the catalogue's tests compile every entry
	}
	d, _ := c.DefaultTolerance()
	return d
}

func source(s provider.Source) string {
	switch s.From {
	case provider.FromJSON:
		return code(s.Name)
	case provider.FromBody:
		if len(s.Except) > 0 {
			return "body hash without " + code(strings.Join(s.Except, ", "))
		}
		return "body hash"
	case provider.FromSignedID:
		return "signed ID"
	case provider.FromMediaType:
		return "the Content-Type"
	case provider.FromMethod:
		return "the method"
	}
	return s.From + " " + code(s.Name)
}

func alternatives(p provider.Part) string {
	names := make([]string, len(p))
	for i, s := range p {
		names[i] = source(s)
	}
	return strings.Join(names, " or ")
}

func parts(all []provider.Part) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = alternatives(p)
		if len(p) > 1 && len(all) > 1 {
			names[i] = "(" + names[i] + ")"
		}
	}
	return strings.Join(names, " + ")
}

func identity(id []provider.Part, fallbacks [][]provider.Part, hash bool) string {
	var all []string
	if len(id) > 0 {
		all = append(all, parts(id))
	}
	for _, f := range fallbacks {
		all = append(all, parts(f))
	}
	if hash && !strings.Contains(strings.Join(all, " "), "body hash") {
		all = append(all, "body hash")
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", else ")
}

// shortIdentity is the primary identity, for the table.
func shortIdentity(s provider.Spec) string {
	switch {
	case len(s.EventID) > 0 && s.Batch != nil:
		return parts(s.EventID) + "; elements: " + parts(s.Batch.EventID)
	case s.Batch != nil:
		return "elements: " + parts(s.Batch.EventID)
	case len(s.EventID) > 0:
		return parts(s.EventID)
	}
	return "none: not deduplicated"
}

func handshakes(s provider.Spec) string {
	if len(s.Handshakes) == 0 {
		return "none"
	}
	names := make([]string, len(s.Handshakes))
	for i, h := range s.Handshakes {
		names[i] = h.Name
	}
	return strings.Join(names, ", ")
}

func condition(w provider.Condition) string {
	switch {
	case w.Absent:
		return source(w.Source) + " is absent"
	case w.Pattern != "":
		return source(w.Source) + " matches " + code(w.Pattern)
	case len(w.Equals) > 0:
		return source(w.Source) + " is " + code(strings.Join(w.Equals, ", "))
	}
	return source(w.Source) + " is present"
}

func handshake(h provider.Handshake) string {
	var b strings.Builder
	b.WriteString(h.Name + ", ")
	if h.Signed {
		b.WriteString("signed")
	} else {
		b.WriteString("unsigned")
	}
	if h.Method != "" {
		b.WriteString(", " + h.Method)
	}
	for _, w := range h.When {
		b.WriteString(", where " + condition(w))
	}
	switch {
	case h.EmptyBody:
		b.WriteString(", without a body")
	case h.EmptyBatch:
		b.WriteString(", a batch without elements")
	case h.Body != "":
		b.WriteString(", whose body matches " + code(h.Body))
	}
	if h.Answer == nil {
		return b.String() + "; the application must answer it"
	}
	return b.String() + "; `handshake answer` can answer it"
}
