package webhookdedup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const factsLabel = 14 // columns before the text of a fact

// facts prints what is known of a provider, a label beside each paragraph.
type facts struct{ out *screen }

// say prints paragraphs under one label. Empty ones are left out.
func (f facts) say(label string, paragraphs ...string) {
	for _, p := range paragraphs {
		if p == "" {
			continue
		}
		for _, line := range wrap(p, 98-factsLabel) {
			fmt.Fprintln(f.out, f.out.style(styleBold, pad(label, factsLabel))+line)
			label = ""
		}
	}
}

// list prints points under one label.
func (f facts) list(label string, points []string) {
	for _, p := range points {
		for i, line := range wrap(p, 96-factsLabel) {
			bullet := "  "
			if i == 0 {
				bullet = "- "
			}
			fmt.Fprintln(f.out, f.out.style(styleBold, pad(label, factsLabel))+bullet+line)
			label = ""
		}
	}
}

func describeProvider(out *screen, s provider.Spec) {
	f := facts{out}
	fmt.Fprintln(out, strings.TrimSpace(out.style(styleBold, s.Title)+"  "+s.Docs))
	fmt.Fprintln(out)
	f.signatures(s)
	f.identity(s)
	f.retries(s)
	f.remembering(s)
	f.body(s)
	fmt.Fprintln(out)
	f.list("Traps", s.Traps)
	f.list("Evidence", s.Evidence)
	f.list("Unverified", s.Unverified)
	f.say("Confidence", s.Confidence)
	if len(s.Traps)+len(s.Evidence)+len(s.Unverified) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, out.style(styleBold, "A Caddyfile:")+"\n\n"+indent(exampleCaddyfile(s)))
}

func (f facts) signatures(s provider.Spec) {
	if len(s.Schemes) == 0 {
		f.say("Signature", "none: deliveries can't be verified, so the directive needs signature off, or a signature block.")
		return
	}
	for i, scheme := range s.Schemes {
		label := "Signature"
		if i > 0 {
			label = "or"
		}
		f.say(label, signatureWords(scheme))
		f.say("  header", headerShape(scheme))
		f.say("  secret", secretWords(scheme))
		f.say("  time", timeWords(scheme))
	}
	if tolerance := toleranceOf(s); tolerance > 0 {
		f.say("Tolerance", shortDuration(tolerance)+" between the signed time and now, in both directions.")
	} else {
		f.say("Tolerance", "none: no time is signed, so an old delivery can be replayed; while its event is remembered, it is a duplicate.")
	}
}

func signatureWords(s provider.Scheme) string {
	if s.Algorithm == "token" {
		return "token: the secret itself is sent, and nothing of the delivery is signed."
	}
	content := s.Content
	setDefault(&content, "{body}")
	signed := "over the raw body"
	if content != "{body}" {
		signed = "over " + content
	}
	words := s.Algorithm + " " + signed
	if s.IDHeader != "" {
		words += ", where {id} is the header " + s.IDHeader
	}
	if s.List != nil {
		words += "; any signature in the header may match"
	}
	return words + "."
}

// headerShape shows the signature header as it is sent.
func headerShape(s provider.Scheme) string {
	encoding := s.Encoding
	setDefault(&encoding, "hex")
	switch {
	case s.Algorithm == "token":
		return s.Header + ": " + s.Prefix + "<secret>"
	case s.List == nil:
		return s.Header + ": " + s.Prefix + "<" + encoding + ">"
	}
	var elements []string
	if t := s.Timestamp; t != nil && t.From == provider.FromElement {
		elements = append(elements, t.Name+s.List.Assign+"<"+timeFormat(t)+">")
	}
	for _, name := range s.List.Names {
		elements = append(elements, name+s.List.Assign+"<"+encoding+">")
	}
	return s.Header + ": " + strings.Join(elements, s.List.Separator)
}

func timeFormat(t *provider.Timestamp) string {
	format := t.Format
	setDefault(&format, provider.FormatUnix)
	return format
}

func secretWords(s provider.Scheme) string {
	words := "used as it is"
	if s.KeyEncoding != "" && s.KeyEncoding != "raw" {
		words = "the key in " + s.KeyEncoding
	}
	if s.KeyPrefix != "" {
		words += ", after " + s.KeyPrefix
		if !s.KeyPrefixRequired {
			words += " where it starts with that"
		}
	}
	if s.Algorithm == "ed25519" {
		words += "; it is the public key"
	}
	return words + "."
}

func timeWords(s provider.Scheme) string {
	if s.Timestamp == nil {
		return ""
	}
	where := map[string]string{
		provider.FromHeader: "header ", provider.FromElement: "element ", provider.FromJSON: "json ",
	}[s.Timestamp.From]
	return where + s.Timestamp.Name + ", " + timeFormat(s.Timestamp) + "."
}

func (f facts) identity(s provider.Spec) {
	parts := func(all []provider.Part) string {
		var texts []string
		for _, p := range all {
			texts = append(texts, sourcesWords(p))
		}
		return strings.Join(texts, " and ")
	}
	if len(s.EventID) == 0 {
		f.say("Event ID", "none")
	} else {
		f.say("Event ID", parts(s.EventID)+".")
	}
	for _, fallback := range s.Fallbacks {
		f.say("  else", parts(fallback)+".")
	}
	if s.BodyHashSafe {
		f.say("  without one", "a digest of the body: equal bodies can only be the same event (on_missing_id hash).")
	} else {
		f.say("  without one", "the delivery is passed on unclaimed: equal bodies may be different events (on_missing_id pass).")
	}
	if len(s.EventType) > 0 {
		f.say("Event type", sourcesWords(s.EventType)+".")
	}
	if len(s.Account) > 0 {
		f.say("Account", sourcesWords(s.Account)+".")
	}
	for _, h := range s.Handshakes {
		signed := "unsigned"
		if h.Signed {
			signed = "signed"
		}
		f.say("Handshake", h.Name+", "+signed+": passed on without a claim.")
	}
}

func sourcesWords(p provider.Part) string {
	var texts []string
	for _, src := range p {
		switch {
		case src.From == provider.FromSignedID:
			texts = append(texts, "the signed ID")
		case src.From == provider.FromBody && len(src.Except) > 0:
			texts = append(texts, "a digest of the body without "+strings.Join(src.Except, " "))
		case src.From == provider.FromBody:
			texts = append(texts, "a digest of the body")
		default:
			texts = append(texts, src.From+" "+src.Name)
		}
	}
	return strings.Join(texts, ", or ")
}

func (f facts) retries(s provider.Spec) {
	r := s.Retry
	timeout := "not published"
	if s.ResponseTimeout > 0 {
		timeout = "it hangs up after " + shortDuration(s.ResponseTimeout) + " without an answer"
	}
	f.say("Timeout", fmt.Sprintf("%s; a delivery whose event is at work waits %s for its outcome, then gets %d.",
		timeout, shortDuration(defaultWait(s.ResponseTimeout)), inFlightStatusOf(s)))
	if !r.Automatic {
		schedule := r.Schedule
		setDefault(&schedule, "none by itself")
		f.say("Retries", schedule)
	} else {
		window := "for a time that is not published"
		if r.Window > 0 {
			window = "for " + shortDuration(r.Window)
		}
		if r.Attempts > 0 {
			window += ", " + strconv.Itoa(r.Attempts) + " attempts in all"
		}
		on := strings.Join(r.On, ", ")
		if len(r.Except) > 0 {
			on += ", but not on " + strings.Join(r.Except, ", ")
		}
		f.say("Retries", window+", on "+on, r.Schedule)
	}
	manual := r.Manual
	if manual != "" && r.ManualWindow > 0 {
		manual += " (for " + shortDuration(r.ManualWindow) + ")"
	}
	f.say("By hand", manual)
}

func (f facts) remembering(s provider.Spec) {
	ttl := shortDuration(s.TTL)
	why := ": for how long it retries is not published."
	switch {
	case s.Own && s.Retry.Window == 0:
		why = ", unless the configuration says otherwise with ttl or retry_window."
	case !s.Retry.Automatic && s.Retry.ManualWindow > 0 && s.TTL >= s.Retry.ManualWindow:
		why = ": longer than it can be redelivered by hand (" + shortDuration(s.Retry.ManualWindow) + ")."
	case !s.Retry.Automatic:
		why = ": it does not retry by itself, so this only has to outlast redeliveries by hand."
	case s.Retry.Window > 0:
		why = ": at least twice the " + shortDuration(s.Retry.Window) + " for which it retries."
	}
	f.say("Remembered", ttl+why)
	if s.Retry.ManualWindow > s.TTL {
		f.say("", "Redeliveries by hand are possible for longer; ttl "+shortDuration(s.Retry.ManualWindow+24*time.Hour)+" makes duplicates of those as well.")
	}
}

func (f facts) body(s provider.Spec) {
	size := "not published, up to " + humanize.IBytes(provider.DefaultMaxBody) + " accepted."
	if s.MaxBody > 0 {
		size = "up to " + humanize.IBytes(uint64(s.MaxBody)) + "."
	}
	f.say("Body", size)
	if methods := methodsOf(s); !slices.Equal(methods, []string{"POST"}) {
		f.say("Methods", strings.Join(methods, ", ")+".")
	}
	if s.Replay {
		f.say("Duplicates", "get the application's first answer again: the provider acts on it.")
	} else {
		f.say("Duplicates", "are answered 200 with an empty body.")
	}
	if !s.Retry.OnStatus(503) {
		f.say("No store", "a delivery is passed on unclaimed while the store fails: refused, it would not come back (on_store_error pass).")
	} else {
		f.say("No store", "a delivery is answered 503 while the store fails, and retried (on_store_error reject).")
	}
}

// exampleCaddyfile is the least that guards an application.
func exampleCaddyfile(s provider.Spec) string {
	secret := "signature off # nothing tells a forged delivery from a real one"
	if len(s.Schemes) > 0 {
		secret = "secret {env." + strings.ToUpper(strings.ReplaceAll(s.ID, "-", "_")) + "_SECRET}"
	}
	return fmt.Sprintf(`hooks.example.com {
	handle /%s {
		webhook_dedup %s {
			%s
		}
		reverse_proxy localhost:8080
	}
}
`, s.ID, s.ID, secret)
}
