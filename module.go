// Package webhookdedup is a Caddy HTTP handler that stands in front of an application which receives webhooks. It
// verifies each delivery, claims its event in a shared store, lets one delivery at a time through, answers duplicates
// itself, and gives the claim back whenever the application did not acknowledge the event.
package webhookdedup

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler processes each webhook event once. A provider delivers the same event several times; the handlers after this
// one see it once, unless they failed to acknowledge it.
//
// It sets these placeholders:
//
// Placeholder | Description
// ------------|---------------
// `{http.webhook_dedup.provider}` | The provider's name
// `{http.webhook_dedup.event_id}` | The event's ID, encoded as in the key
// `{http.webhook_dedup.event_type}` | The provider's name for the kind of event
// `{http.webhook_dedup.key}` | The scoped key that the store knows
// `{http.webhook_dedup.result}` | What became of the delivery: `processed`, `duplicate`, …
// `{http.webhook_dedup.attempt}` | The number of this run of the event; the first is 1
//
// The application gets the request headers `Webhook-Dedup-Key` and `Webhook-Dedup-Attempt`; the provider gets the
// response header `Webhook-Dedup` with the result.
type Handler struct {
	// The provider whose deliveries come here: a name from the catalogue (`caddy webhook-dedup providers` lists it) or
	// one of the app's own `providers`. Required.
	Provider string `json:"provider"`

	// The secrets that the provider may sign with; any of them may match, so that one can be rotated. Placeholders are
	// allowed, also those of a request (one secret a tenant); a secret that is empty once expanded is an error.
	// Required unless `signature_off` is set. Use `{env.NAME}` or `{file./path}`: what stands here literally can be read
	// through the admin API.
	Secrets []string `json:"secrets,omitempty"`

	// Verifies nothing. Whoever can reach the endpoint can then send events, and claim the IDs of others. Default: false
	SignatureOff bool `json:"signature_off,omitempty"`

	// Replaces the provider's signature scheme. Default: the provider's
	Signature *provider.Scheme `json:"signature,omitempty"`

	// How far a delivery's timestamp may be from now, in both directions; -1 turns the check off. It has no effect where
	// the provider signs no timestamp. Default: the provider's, else 5m
	Tolerance caddy.Duration `json:"tolerance,omitempty"`

	// The scheme, host, port and path prefix under which the provider knows this endpoint, where another proxy stands
	// in between: `https://hooks.example.com`. Used by providers that sign the URL. Default: as received
	PublicURL string `json:"public_url,omitempty"`

	// Where the event ID is found: a list of parts, each a list of alternatives of which the first present one counts.
	// `[[{"from":"header","name":"X-Id"}]]` is one part with one source. Default: the provider's
	ID []provider.Part `json:"id,omitempty"`

	// What tells endpoints apart that are registered separately at the provider and are sent the same events.
	// Placeholders are allowed. Default: the host and the original path of the request
	Scope string `json:"scope,omitempty"`

	// How long a processed event is remembered. Default: the provider's, at least twice as long as it retries
	TTL caddy.Duration `json:"ttl,omitempty"`

	// How long a claim holds without a sign of life from the proxy that holds it. It is renewed while the application
	// works, so this is the time for which an event is blocked after a crash. At least six times `store_timeout`.
	// Default: 30s
	Lease caddy.Duration `json:"lease,omitempty"`

	// The bound of one upstream call. It goes on when the provider hangs up. Default: 2m
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// What happens to a delivery whose event is being processed. Default: it waits
	InFlight *InFlight `json:"in_flight,omitempty"`

	// What happens to a delivery without an event ID: `pass` forwards it without a claim, `hash` takes the digest of its
	// body for an ID, `reject` answers 400. Default: `hash` where equal bodies of the provider are the same event, else
	// `pass`
	OnMissingID string `json:"on_missing_id,omitempty"`

	// What happens to a delivery when the store fails: `reject` answers 503, so that the provider retries; `pass`
	// forwards it without a claim, so that it may be processed twice. Default: `reject`, and `pass` for providers that
	// do not retry a 503 by themselves
	OnStoreError string `json:"on_store_error,omitempty"`

	// The bound of one operation of the store. Default: 500ms
	StoreTimeout caddy.Duration `json:"store_timeout,omitempty"`

	// The statuses of the application that mean that the event was processed: codes such as `409` or classes such as
	// `2xx`. 5xx never does. Default: `["2xx"]`
	Acknowledge []string `json:"acknowledge,omitempty"`

	// How duplicates are answered. Default: 200 with an empty body, and a replay where the provider acts on the answer
	Duplicate *Duplicate `json:"duplicate,omitempty"`

	// The name of a request header in which the application also gets the event ID, such as `Idempotency-Key`.
	// Default: none
	ForwardKey string `json:"forward_key,omitempty"`

	// The longest body in bytes. Default: the provider's, else 10485760
	MaxBody int64 `json:"max_body,omitempty"`

	// How many bytes of the application's response are held back until the record is written; the rest is streamed.
	// Default: 1048576
	MaxResponse int64 `json:"max_response,omitempty"`

	// What the application gets of a delivery that carries several events: `whole` forwards the untouched body, unless
	// every event in it was processed before; `filter` forwards only the new ones, which breaks the provider's signature
	// for an application that checks it itself. Only for providers that send arrays. Default: `whole`
	Batch string `json:"batch,omitempty"`

	// Who answers the provider's test of the endpoint (Slack's `url_verification`, Zoom's CRC, …): `pass` leaves it to the
	// application, `answer` has the module do it where that takes only the secret. Default: `pass`
	Handshake string `json:"handshake,omitempty"`

	// A file with the provider's certificate chain in PEM, leaf first, for providers that sign with a certificate (AWS
	// SNS, PayPal). Placeholders are allowed. Default: the certificate is fetched from the address that the delivery
	// names, if that is the provider's, and kept
	Certificate string `json:"certificate,omitempty"`

	// `enforce`, or `observe`: everything is verified, claimed and recorded, but every delivery goes to the application
	// and gets the application's answer. Default: `enforce`
	Mode string `json:"mode,omitempty"`

	// The store of this route. Default: the one of the `webhook_dedup` app
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=webhook_dedup.stores inline_key=module"`

	// Where this handler was configured, for error messages: the Caddyfile adapter sets file and line. Default: none
	DefinedAt string `json:"defined_at,omitempty"`

	app      *App
	provider *provider.Compiled
	spec     provider.Spec
	secrets  *secrets
	store    *storeHandle
	held     bool // a reference to the store
	logger   *zap.Logger
	metrics  *handlerMetrics
	limited  *zap.Logger // for lines that an outage can repeat at any rate
	sampled  *zap.Logger // for lines that somebody without a secret can
	limits   map[result]*lineLimit
	recent   *recent

	tolerance      time.Duration
	publicURLBase  string
	keep           time.Duration // how long a record that is not processed is remembered
	inFlight       string
	inFlightStatus int
	wait           time.Duration
	acknowledged   statusSet
	allow          string // the methods that a request may have
	certificates   provider.CertificateSource
	replayLimit    int64 // 0: duplicates are not answered with the stored response
}

// InFlight is what happens to a delivery whose event another delivery is processing.
type InFlight struct {
	// `wait`: it waits for the other one's outcome, and processes the event if that failed. `reject`: it is answered with
	// `status` at once. `accept`: it is answered 200 at once, so that the event is lost if the other one fails.
	// Default: `wait`
	Action string `json:"action,omitempty"`

	// How long it waits before it is answered with `status`. Default: the provider's response timeout less 20 % (at
	// least 0.5s), at most 25s; 8s where that timeout is not known
	Wait caddy.Duration `json:"wait,omitempty"`

	// The status of a delivery that is not let through, from 400 to 599. Default: one that the provider retries on,
	// mostly 503
	Status int `json:"status,omitempty"`
}

// Duplicate is how a delivery of a processed event is answered.
type Duplicate struct {
	// The status, from 200 to 299. Default: 200
	Status int `json:"status,omitempty"`

	// The body. Default: empty
	Body string `json:"body,omitempty"`

	// Answers with the application's first acknowledged response, which is stored with the record. Default: false
	Replay bool `json:"replay,omitempty"`

	// The largest response in bytes, headers included, that is stored; duplicates of an event with a larger one get
	// `status` and `body`. Default: 65536
	MaxSize int64 `json:"max_size,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.webhook_dedup",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision sets the handler up. It touches no network and no file of the store.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.limited, h.sampled = limited(h.logger, outageBurst), limited(h.logger, floodBurst)
	h.limits = newResultLimits()
	if err := h.configure(ctx); err != nil {
		return h.located(err)
	}
	if err := metrics().register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	h.metrics = newHandlerMetrics(h.Provider, h.Mode)
	h.recent = recentOfProcess()
	h.store.acquire()
	h.held = true
	allowRun(time.Duration(h.Timeout))
	h.app.use(h.store)
	h.advise()
	return nil
}

// Cleanup gives up the handler's hold on its store. Deliveries under way have their own; when the process exits, they
// are waited for.
func (h *Handler) Cleanup() error {
	if !h.held {
		return nil
	}
	waitOnExit(h.logger)
	h.held = false
	h.store.release()
	return nil
}

// ServeHTTP takes one request through the pipeline.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	d := h.newDelivery(w, r, next)
	defer d.end()

	// Is it a delivery? What its head can tell is refused before its body is read.
	if d.isPlain() {
		return d.pass()
	}
	if refused := d.checkHead(); refused != nil {
		return d.refuse(refused)
	}
	if refused := d.readBody(); refused != nil {
		return d.refuse(refused)
	}

	// Verify before anything is known of the event: forged deliveries must not burn the IDs of real ones.
	handshake, signed := d.isHandshake()
	if signed || !handshake {
		if refused := d.verify(); refused != nil {
			return d.refuse(refused)
		}
	}
	if handshake {
		return d.handshake()
	}

	// A batch carries several events, each claimed by itself.
	if events, refused := d.split(); refused != nil {
		return d.refuse(refused)
	} else if events != nil {
		return events.serve()
	}

	// Identify the event within its scope.
	if refused := d.identify(); refused != nil {
		return d.refuse(refused)
	}
	if d.key == "" {
		return d.forwardUnclaimed(resultPassed)
	}

	// Claim it; one of all its deliveries goes on to the application.
	verdict, refused := d.acquire()
	switch verdict {
	case verdictGranted:
		return d.forwardClaimed(&d.claimedEvent)
	case verdictDuplicate:
		return d.answerDuplicate()
	case verdictUnguarded:
		return d.forwardUnguarded()
	case verdictAccepted:
		return d.accept()
	}
	return d.refuse(refused)
}

// acknowledges reports whether a status of the application means that the event was processed.
func (h *Handler) acknowledges(status int) bool { return h.acknowledged.has(status) }

// observes reports whether every delivery goes to the application, whatever its result.
func (h *Handler) observes() bool { return h.Mode == modeObserve }

// renewEvery is how often a held claim is renewed.
func (h *Handler) renewEvery() time.Duration { return time.Duration(h.Lease) / 3 }

// publicURL is the URL that the provider has signed, as far as it signs URLs.
func (h *Handler) publicURL(r *http.Request) string {
	original := originalURL(r)
	base := h.publicURLBase
	if base == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + r.Host
	}
	return base + original.RequestURI()
}

// originalURL is the URL before any rewrite.
func originalURL(r *http.Request) *url.URL {
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return original.URL
	}
	return r.URL
}

func digest(b []byte) [32]byte { return sha256.Sum256(b) }

// located adds the place of the configuration to an error.
func (h *Handler) located(err error) error {
	return located(h.DefinedAt, err)
}

// statusSet is a set of HTTP statuses.
type statusSet [600]bool

func (s *statusSet) has(status int) bool { return status >= 0 && status < len(s) && s[status] }

// add adds a code such as 409 or a class such as 2xx, and reports whether word is one.
func (s *statusSet) add(word string) bool {
	if class, ok := strings.CutSuffix(strings.ToLower(word), "xx"); ok && len(class) == 1 && class[0] >= '2' && class[0] <= '4' {
		first := int(class[0]-'0') * 100
		for status := first; status < first+100; status++ {
			s[status] = true
		}
		return true
	}
	status, err := parseStatus(word, 200, 499)
	if err == nil {
		s[status] = true
	}
	return err == nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
