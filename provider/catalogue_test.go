package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// undeduplicated are the entries in which nothing names an event; their TTL is for a hash of bytes that repeat, if that is asked for.
var undeduplicated = map[string]time.Duration{"dropbox": time.Minute, "plaid": 5 * time.Minute}

// unwindowed are those whose retry window is not published.
var unwindowed = []string{"gethook"}

// untyped are those whose event type no source could read.
var untyped = []string{"braintree", "dropbox", "telegram"}

// derived are those whose identity ends in something that the ID is in, the hash of a body for the most part.
var derived = []string{"asana", "braintree", "calendly", "klaviyo", "lemonsqueezy", "sentry", "woocommerce", "zoom"}

func TestCatalogue(t *testing.T) {
	all := provider.All()
	if !slices.IsSortedFunc(all, func(a, b provider.Spec) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("not sorted")
	}
	if len(slices.CompactFunc(all, func(a, b provider.Spec) bool { return a.ID == b.ID })) != len(provider.All()) {
		t.Error("an ID twice")
	}
	for _, s := range provider.All() {
		t.Run(s.ID, func(t *testing.T) {
			checkFacts(t, s)
			checkExample(t, compile(t, s))
		})
	}
	if _, ok := provider.Lookup("nobody"); ok {
		t.Error("found nobody")
	}
}

func checkFacts(t *testing.T, s provider.Spec) {
	if s.Title == "" || !strings.HasPrefix(s.Docs, "https://") || len(s.Evidence) == 0 || len(s.Traps) == 0 || s.Retry.Schedule == "" ||
		!slices.Contains([]string{"high", "medium", "low"}, s.Confidence) {
		t.Error("title, docs, schedule, traps, evidence and confidence must be set")
	}
	for _, trap := range s.Traps {
		if !strings.HasSuffix(trap, ".") {
			t.Errorf("trap %q is no sentence", trap)
		}
	}
	if short, ok := undeduplicated[s.ID]; ok && s.TTL != short || !ok && (s.TTL <= 0 || s.TTL < 2*s.Retry.Window) {
		t.Errorf("TTL %v, retry window %v", s.TTL, s.Retry.Window)
	}
	if s.Retry.Automatic != (len(s.Retry.On) > 0) {
		t.Error("a provider that retries does so on something, another does not")
	}
	if s.Retry.Automatic == slices.Contains(unwindowed, s.ID) != (s.Retry.Window == 0) {
		t.Error("a provider that retries has a window, another has none")
	}
	status := s.InFlightStatus
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	if s.Retry.Automatic && !s.Retry.OnStatus(status) {
		t.Errorf("%d, the answer to a delivery in flight, is not retried", status)
	}
	if s.Own {
		t.Error("is no own provider")
	}
	if slices.Contains(untyped, s.ID) != (len(s.EventType) == 0 && (s.Batch == nil || len(s.Batch.EventType) == 0)) {
		t.Error("an event type, or a reason for having none")
	}
}

// checkExample: the example is a delivery as the provider makes it.
func checkExample(t *testing.T, c *provider.Compiled) {
	const id = "1234567"
	s := c.Spec()
	d := signed(t, c, id)
	if !c.IsDelivery(d.Method) {
		t.Errorf("%s is not a delivery", d.Method)
	}
	if err := c.CheckHeaders(d.Header); err != nil {
		t.Error(err)
	}
	if err := verify(t, c, &d, now); err != nil {
		t.Fatal(err)
	}
	if name, _, ok := c.Handshake(&d); ok {
		t.Errorf("example is a handshake %s", name)
	}
	if mediaType, _, _ := mime.ParseMediaType(d.Header.Get("Content-Type")); json.Valid(d.Body) == (mediaType == "application/x-www-form-urlencoded") {
		t.Error("example's body is not what its content type says")
	}
	if eventType(t, c, &d) == "" && !slices.Contains(untyped, s.ID) {
		t.Error("example has no type")
	}
	parts := identity(t, c, &d)
	if _, none := undeduplicated[s.ID]; none && (parts != nil || s.BodyHashSafe) {
		t.Errorf("nothing may name its events: %v", parts)
	} else if !none {
		checkIdentity(t, c, id, parts)
	}
	checkRefusals(t, c, d)
}

// eventType is the event's type, or that of the first of a batch.
func eventType(t *testing.T, c *provider.Compiled, d *provider.Delivery) string {
	if elements, err := c.Elements(d); err == nil {
		return elements[0].Type
	}
	id, err := c.Identify(d)
	if err != nil && !errors.Is(err, provider.ErrMissingID) {
		t.Error(err)
	}
	return id.Type
}

func checkIdentity(t *testing.T, c *provider.Compiled, id string, parts []string) {
	if len(parts) == 0 || (parts[len(parts)-1] == id) == slices.Contains(derived, c.Spec().ID) {
		t.Fatalf("identity %v", parts)
	}
	// The same event again, a minute later.
	again := example(c, id, now)
	sign(t, c, &again, now.Add(time.Minute))
	if err := verify(t, c, &again, now.Add(time.Minute)); err != nil {
		t.Error("repeat:", err)
	}
	if got := identity(t, c, &again); !slices.Equal(got, parts) {
		t.Errorf("repeat: %v, first %v", got, parts)
	}
	// Another event of the type.
	other := signed(t, c, "7654321")
	if got := identity(t, c, &other); got == nil || slices.Equal(got, parts) {
		t.Errorf("another event: %v", got)
	}
}

// headersTell reports whether headers alone tell that a delivery is not signed: it is no handshake, nor signed in its body.
func headersTell(s provider.Spec) bool {
	return !slices.ContainsFunc(s.Schemes, func(s provider.Scheme) bool { return s.Signature != nil }) && !slices.ContainsFunc(s.Handshakes, func(h provider.Handshake) bool {
		return !h.Signed && (h.Method == "" || h.Method == "POST")
	})
}

// checkRefusals: tampered, unsigned, and signed with another key.
func checkRefusals(t *testing.T, c *provider.Compiled, d provider.Delivery) {
	s := c.Spec()
	if !bodyUnsigned(s) {
		tampered := d
		tampered.Body = append(slices.Clone(d.Body), '\n')
		if err := verify(t, c, &tampered, now); !errors.Is(err, provider.ErrSignature) {
			t.Errorf("tampered: %v", err)
		}
	}
	wrong := d
	wrong.Header = d.Header.Clone()
	wrong.Body = slices.Clone(d.Body)
	if err := c.Sign(&wrong, wrongPairOf(s.ID).Sign, now); err != nil {
		t.Fatal(err)
	}
	if err := verify(t, c, &wrong, now); !errors.Is(err, provider.ErrSignatureMismatch) {
		t.Errorf("wrong key: %v", err)
	}
	unsigned := d
	unsigned.Header = d.Header.Clone()
	for _, scheme := range s.Schemes {
		if scheme.Header != "" {
			delete(unsigned.Header, http.CanonicalHeaderKey(scheme.Header))
		}
	}
	if !reflect.DeepEqual(unsigned.Header, d.Header) {
		if err := verify(t, c, &unsigned, now); !errors.Is(err, provider.ErrSignatureMissing) {
			t.Errorf("unsigned: %v", err)
		}
		if err := c.CheckHeaders(unsigned.Header); err == nil && headersTell(s) {
			t.Error("unsigned: passes by its headers")
		}
	}
	if _, timestamped := c.DefaultTolerance(); timestamped && !bodyUnsigned(s) {
		if err := verify(t, c, &d, now.Add(s.Tolerance+time.Hour)); !errors.Is(err, provider.ErrStale) {
			t.Errorf("stale: %v", err)
		}
		if err := verify(t, c, &d, now.Add(-s.Tolerance-time.Hour)); !errors.Is(err, provider.ErrFuture) {
			t.Errorf("from the future: %v", err)
		}
	}
}

// bodyUnsigned reports whether the example may be authenticated without its body.
func bodyUnsigned(s provider.Spec) bool {
	return slices.ContainsFunc(s.Schemes, func(s provider.Scheme) bool {
		return s.Algorithm == "token" || s.Algorithm == "basic" || s.BodyUnsigned
	})
}

// wantFacts are facts that must not change by accident.
var wantFacts = []struct {
	id                   string
	ttl, window, timeout time.Duration
	hashSafe, replay     bool
	maxBody              int64
}{
	{"adyen", 60 * day, 30 * day, 10 * time.Second, true, false, 0},
	{"asana", 2 * day, day, 10 * time.Second, false, false, 0},
	{"aws-sns", day, time.Hour, 15 * time.Second, true, false, 0},
	{"bitbucket", day, 10 * time.Minute, 10 * time.Second, false, false, 256 << 10},
	{"braintree", 2 * day, day, 30 * time.Second, false, false, 0},
	{"calendly", 2 * day, day, 0, true, false, 0},
	{"chargebee", 9436 * time.Minute, 4718 * time.Minute, time.Minute, true, false, 0},
	{"circleci", 3 * day, day, 10 * time.Second, true, false, 0},
	{"clerk", 3 * day, 99305 * time.Second, 15 * time.Second, false, false, 0},
	{"coinbase-commerce", 6 * day, 3 * day, 0, false, false, 0},
	{"contentful", day, 2 * time.Minute, 30 * time.Second, false, false, 0},
	{"customerio", 14 * day, 7 * day, 4 * time.Second, true, false, 0},
	{"discord", time.Hour, 0, 3 * time.Second, true, true, 0},
	{"docusign", 30 * day, 15 * day, 100 * time.Second, false, false, 0},
	{"dropbox", time.Minute, 10 * time.Minute, 10 * time.Second, false, false, 0},
	{"gethook", 7 * day, 0, 30 * time.Second, false, false, 5 << 20},
	{"github", 4 * day, 0, 10 * time.Second, true, false, 25 << 20},
	{"gitlab", 7 * day, 0, 10 * time.Second, false, false, 25 << 20},
	{"gocardless", 7 * day, 3 * day, 0, false, false, 0},
	{"hookdeck", 14 * day, 7 * day, time.Minute, false, false, 0},
	{"hubspot", 2 * day, day, 5 * time.Second, false, false, 0},
	{"intercom", day, 2 * time.Hour, 5 * time.Second, false, false, 0},
	{"jira", day, 30 * time.Minute, 20 * time.Second, false, false, 0},
	{"klaviyo", 6 * day, 3 * day, 0, true, false, 0},
	{"lemonsqueezy", day, 155 * time.Second, 0, true, false, 0},
	{"line", 3 * day, day, 2 * time.Second, false, false, 0},
	{"linear", day, 7*time.Hour + time.Minute, 5 * time.Second, false, false, 0},
	{"mailgun", day, 485 * time.Minute, 0, false, false, 0},
	{"meta", 14 * day, 7 * day, 10 * time.Second, false, false, 3 << 20},
	{"mollie", 52 * time.Hour, 26 * time.Hour, 15 * time.Second, false, false, 0},
	{"mux", 2 * day, day, 0, false, false, 0},
	{"openai", 6 * day, 3 * day, 0, true, false, 0},
	{"paddle", 6 * day, 3 * day, 5 * time.Second, true, false, 0},
	{"pagerduty", 4 * day, 2 * day, 5 * time.Second, true, false, 0},
	{"paypal", 6 * day, 3 * day, 0, true, false, 0},
	{"plaid", 5 * time.Minute, day, 10 * time.Second, false, false, 0},
	{"postmark", day, 38000 * time.Second, 2 * time.Minute, true, false, 0},
	{"razorpay", 8 * day, day, 5 * time.Second, true, false, 0},
	{"recurly", 524616 * time.Second, 262308 * time.Second, 0, true, false, 0},
	{"resend", 3 * day, 99305 * time.Second, 15 * time.Second, false, false, 0},
	{"sanity", day, time.Minute, 30 * time.Second, false, false, 0},
	{"sendgrid", 3 * day, day, 0, false, false, 0},
	{"sentry", day, 0, 0, false, false, 0},
	{"shopify", 3 * day, 4 * time.Hour, 5 * time.Second, false, false, 0},
	{"slack", 25 * time.Hour, 10 * time.Minute, 3 * time.Second, true, true, 0},
	{"square", 6 * day, 3 * day, 10 * time.Second, true, false, 0},
	{"standard-webhooks", 544210 * time.Second, 272105 * time.Second, 15 * time.Second, false, false, 0},
	{"stripe", 7 * day, 3 * day, 0, true, false, 0},
	{"svix", 3 * day, 99305 * time.Second, 15 * time.Second, false, false, 0},
	{"telegram", 2 * day, day, 0, true, true, 0},
	{"trello", day, 210 * time.Second, 0, true, false, 0},
	{"twilio", day, 0, 15 * time.Second, false, true, 0},
	{"twitch", day, 10 * time.Minute, 0, false, false, 0},
	{"typeform", day, 10 * time.Hour, 30 * time.Second, true, false, 0},
	{"vercel", 2 * day, day, 30 * time.Second, true, false, 0},
	{"woocommerce", day, 0, time.Minute, false, false, 0},
	{"workos", 6 * day, 3 * day, 0, true, false, 0},
	{"xero", 2 * day, day, 5 * time.Second, false, false, 0},
	{"zendesk", day, time.Hour, 12 * time.Second, false, false, 0},
	{"zoom", day, 85 * time.Minute, 3 * time.Second, true, false, 0},
}

const day = 24 * time.Hour

func TestCatalogueFacts(t *testing.T) {
	all := provider.All()
	if len(wantFacts) != len(all) {
		t.Errorf("%d entries, %d checked", len(all), len(wantFacts))
	}
	for _, tt := range wantFacts {
		s := lookup(t, tt.id)
		if s.TTL != tt.ttl || s.Retry.Window != tt.window || s.ResponseTimeout != tt.timeout || s.BodyHashSafe != tt.hashSafe ||
			s.Replay != tt.replay || s.MaxBody != tt.maxBody {
			t.Errorf("%s: %v %v %v %v %v %v", tt.id, s.TTL, s.Retry.Window, s.ResponseTimeout, s.BodyHashSafe, s.Replay, s.MaxBody)
		}
	}
}

// TestUnsupported: what is left out is named with its provider and the reason.
func TestUnsupported(t *testing.T) {
	for _, g := range provider.Unsupported() {
		if _, ok := provider.Lookup(g.Provider); !ok || g.Name == "" || !strings.HasSuffix(g.Reason, ".") {
			t.Errorf("%+v", g)
		}
	}
}

// TestSamples: two events of a provider differ, no name in braces is left over, and any ID leaves the body well formed.
func TestSamples(t *testing.T) {
	for _, s := range provider.All() {
		if a, b := s.Example("a1", now), s.Example("a2", now); bytes.Equal(a.Body, b.Body) && reflect.DeepEqual(a.Header, b.Header) {
			t.Errorf("%s: two events are the same", s.ID)
		}
		d := s.Example("a1", now)
		if text := string(d.Body); strings.Contains(text, "{event") || strings.Contains(text, "{unix") || strings.Contains(text, "{rfc3339") {
			t.Errorf("%s: a name in braces is left over", s.ID)
		}
		// An ID that needs escaping leaves the body well formed.
		d = s.Example("a\"\\é&=%", now)
		if !json.Valid(d.Body) && !strings.Contains(d.Header.Get("Content-Type"), "form") {
			t.Errorf("%s: %s", s.ID, d.Body)
		}
	}
}
