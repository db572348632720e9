// Package provider knows what each webhook provider's deliveries look like: how they are signed, which event they carry, how
// they are retried. A provider is data, one [Spec]; nothing here branches on a provider's name. The package does no I/O and
// knows neither Caddy nor the store: [Compile] checks a Spec once, the [Compiled] it returns then verifies and identifies any
// number of deliveries, concurrently.
package provider

import "time"

// Spec is all that is known about one provider. The catalogue's entries come from [Lookup] and [All]; a provider of one's own
// needs ID, Schemes, EventID and TTL only. The zero value of a field means what its comment says, "unknown" where it says nothing.
type Spec struct {
	// ID is the name used in configuration, keys and metrics: lower case letters, digits and dashes.
	ID string
	// Title is the provider's name as it writes it.
	Title string
	// Docs is the address of the provider's page on verifying or receiving deliveries.
	Docs string
	// Own marks a provider defined by the user. [Compile] then insists on an EventID, because guessing one loses events.
	Own bool

	// Methods are the HTTP methods of a delivery, default POST.
	Methods []string
	// Schemes are the signature schemes. The first whose signature is present and whose conditions hold decides, together
	// with those of the same signature whose conditions hold as well; there is no falling back from a signature that is
	// present to another. None: deliveries can't be verified.
	Schemes []Scheme
	// Tolerance is the largest accepted difference between a signed timestamp and now, in both directions. Zero: 5 minutes.
	Tolerance time.Duration

	// EventID are the parts that together name an event, each stable over redeliveries.
	EventID []Part
	// Fallbacks are whole identities, tried in order where a part of EventID (or of the fallback before) is missing. One of
	// them is also how a provider with two families of headers is described.
	Fallbacks [][]Part
	// EventType and Account are for logs and listings, never part of a key.
	EventType, Account Part

	// Batch is where the events are in deliveries that carry several, see [Compiled.Elements]. A delivery that is no batch
	// has the identity above.
	Batch *Batch

	// Handshakes are requests that are no events: endpoint validations, challenges, pings without an ID.
	Handshakes []Handshake

	// Retry is what the provider does when a delivery is not acknowledged.
	Retry Retry
	// ResponseTimeout is how long the provider waits for an answer. Zero: not published.
	ResponseTimeout time.Duration
	// TTL is how long a processed event is to be remembered, at least twice Retry.Window.
	TTL time.Duration
	// MaxBody is the largest body the provider sends, in bytes. Zero: not published.
	MaxBody int64
	// BodyHashSafe says that equal bytes can only be the same event, so that a hash of the body may stand in for a missing ID.
	BodyHashSafe bool
	// Replay says that the provider uses the answer's body, so that a duplicate must get the first answer again.
	Replay bool
	// InFlightStatus is the answer to a delivery of an event that is still being processed, one that the provider
	// retries. Zero: 503.
	InFlightStatus int

	// Traps are what receivers get wrong, a sentence each.
	Traps []string
	// Evidence are the sources of the facts above.
	Evidence []string
	// Unverified are facts above, or beside them, that were not confirmed by a source.
	Unverified []string
	// Confidence in the facts above: high, medium or low.
	Confidence string

	// Sample is a realistic event, see [Spec.Example].
	Sample Sample
}

// Retry is a provider's behaviour after an attempt that was not acknowledged.
type Retry struct {
	// Automatic says that the provider retries by itself.
	Automatic bool
	// Window is the time from the first attempt to the last automatic one.
	Window time.Duration
	// Attempts is the number of attempts, the first included. Zero: not published.
	Attempts int
	// Schedule describes the intervals, in words.
	Schedule string
	// On lists what is retried: "3xx", "4xx", "5xx", single statuses, and "timeout".
	On []string
	// Except lists single statuses of On that end the retries.
	Except []string
	// Manual describes redelivery by hand, in words. Empty: there is none.
	Manual string
	// ManualWindow is how long after the event a redelivery by hand is possible. Zero: none, or not published.
	ManualWindow time.Duration
}

// OnStatus reports whether the provider retries by itself after an answer with the status.
func (r Retry) OnStatus(status int) bool {
	if !r.Automatic || status < 100 || status > 599 {
		return false
	}
	code := string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
	for _, s := range r.Except {
		if s == code {
			return false
		}
	}
	for _, s := range r.On {
		if s == code || s == code[:1]+"xx" {
			return true
		}
	}
	return false
}

// Batch describes deliveries that are arrays of events.
type Batch struct {
	// Paths are those of the elements, or of the arrays that hold them: $, $.events, or through arrays of arrays
	// $.entry[*].changes[*].value.messages[*]. An item of an array on the way that leads to no element by any path is
	// an element itself: it must not get lost among those that are known.
	Paths []string
	// EventID are the parts that together name an element's event. JSON paths start at the element, body is the
	// element's bytes; headers and the query are the delivery's.
	EventID []Part
	// Fallbacks are whole identities of an element, as in [Spec.Fallbacks].
	Fallbacks [][]Part
	// EventType and Account are the element's.
	EventType, Account Part
}

// Handshake describes a request that a provider sends to check the endpoint. It is passed on without a claim.
type Handshake struct {
	// Name is for logs, url_verification say.
	Name string
	// Signed says that the provider signs it as it signs events, or by a scheme with OnlyHandshakes. An unsigned one must
	// describe its whole body, by EmptyBody or Body: everybody can send it.
	Signed bool
	// Method is its HTTP method, default POST.
	Method string
	// When are conditions that must all hold.
	When []Condition
	// EmptyBody demands a body of no bytes.
	EmptyBody bool
	// EmptyBatch demands a batch without elements.
	EmptyBatch bool
	// Body is a regular expression that the whole body must match. Empty: any body.
	Body string
	// Answer is what the provider expects, where a secret is all that is needed for it; see [Compiled.AnswerHandshake].
	Answer *Answer
}

// Answer is the answer to a handshake. In Body and in the values of Header stand {header:<name>}, {json:<path>}, {form:<field>} and
// {query:<name>} for what the handshake says, {mac:json:<path>} and so on for its MAC with the secret, made and encoded as the
// provider's first HMAC scheme does, and {key_name} for the secret's name. Any other brace is text. In a body of JSON the values are
// escaped. If one is missing, there is no answer.
//
// An unsigned handshake that is answered with a MAC needs a condition with a Pattern on what the MAC is of: anybody could have
// whole deliveries signed.
type Answer struct {
	// Status is the HTTP status, default 200.
	Status int
	// Header are header fields. The default Content-Type of a body is text/plain, or JSON where the body is an object.
	Header map[string]string
	// Body is the body.
	Body string
}

// Condition holds if the source is present and, where Equals lists values, is one of them.
type Condition struct {
	Source Source
	Equals []string
	// Pattern is a regular expression that the whole value must match. Empty: any value.
	Pattern string
	// Absent turns it around: the source must be missing.
	Absent bool
}

// Sample is an example event. In the values of Header and in Body {event_id} stands for the ID, {event_number} for the ID where it is a
// number, {unix} and {unix_ms} for the time in seconds and milliseconds, and {rfc3339} for the time in that format. What stands
// between {base64} and {/base64} in Body is encoded so, with a line break behind it.
type Sample struct {
	Header map[string]string
	Body   string
}

const (
	// DefaultTolerance applies to timestamped schemes of providers that name no tolerance.
	DefaultTolerance = 5 * time.Minute
	// DefaultMaxBody applies to providers that publish no limit, in bytes.
	DefaultMaxBody = 10 << 20
)
