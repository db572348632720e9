package webhookdedup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// maxDrained is the length up to which a refused body is read after all, so that the connection can be used again.
const maxDrained = 64 << 10

// delivery is one HTTP request on its way through the handler.
type delivery struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	next caddyhttp.Handler
	repl *caddy.Replacer

	body     *body
	readable *bodyReader // r.Body, for placeholders
	filtered *body       // what the application gets of a batch, where that is not all
	parsed   provider.Delivery

	claimedEvent     // the one of a delivery that is no batch
	elements     int // how many events a batch carries
	shared       *sharedStore
	running      bool // counted among the runs

	result   result
	cause    error
	arrived  time.Time
	upstream time.Duration
	status   int // the application's, 0 where it was not asked
}

func (h *Handler) newDelivery(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) *delivery {
	d := &delivery{h: h, w: w, r: r, next: next, arrived: time.Now()}
	d.repl, _ = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	d.repl.Map(d.placeholder)
	stripOwn(r.Header, h.ForwardKey)
	return d
}

// end gives back what the delivery holds, and writes its line to the log.
func (d *delivery) end() {
	if d.readable != nil {
		d.readable.Close()
	}
	if d.body != nil {
		d.body.release()
	}
	if d.filtered != nil {
		d.filtered.release()
	}
	if d.shared != nil {
		d.h.store.release()
	}
	if d.running {
		runs.done() // only now: the outcome is recorded, and nothing of the store is needed any more
	}
	if counter, ok := d.h.metrics.deliveries[d.result]; ok {
		counter.Inc()
	}
	d.trace()
	d.note()
	d.log()
}

// isPlain reports whether the request is none of the provider's and carries nothing that could be one: it passes on
// untouched.
func (d *delivery) isPlain() bool {
	switch d.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		// An upgrade would give an unverified sender a connection to the application.
		return !d.h.provider.IsDelivery(d.r.Method) && d.r.ContentLength == 0 && d.r.Header.Get("Upgrade") == ""
	}
	return false
}

// checkHead refuses what the request's head alone tells to be none of the provider's, before its body is read.
func (d *delivery) checkHead() *refusal {
	if !d.h.provider.IsDelivery(d.r.Method) {
		d.w.Header().Set("Allow", d.h.allow)
		return refuse(resultNotAllowed, http.StatusMethodNotAllowed, fmt.Errorf("%s is no method of a delivery", d.r.Method))
	}
	stripUpgrade(d.r.Header)
	if !d.h.SignatureOff {
		if err := d.h.provider.CheckHeaders(d.r.Header); err != nil {
			return refuse(resultInvalidSignature, http.StatusUnauthorized, err)
		}
	}
	if d.r.ContentLength > d.h.MaxBody {
		return refuse(resultTooLarge, http.StatusRequestEntityTooLarge, errBodyTooLarge)
	}
	return nil
}

// readBody holds the whole body, so that a client that dies in the middle of its upload never reaches the application.
func (d *delivery) readBody() *refusal {
	live := d.r.Body
	var err error
	d.body, err = readBody(live, d.r.ContentLength, d.h.MaxBody, d.h.app.maxBuffered)
	if err != nil {
		return d.unreadable(live, err)
	}
	if length := d.r.ContentLength; length >= 0 && length != int64(len(d.body.bytes())) {
		return refuse(resultBadRequest, http.StatusBadRequest, errors.New("the body is not as long as Content-Length says"))
	}
	d.readable = d.body.reader()
	d.r.Body = d.readable
	d.digest = digest(d.body.bytes())
	d.parse(d.body.bytes())
	return nil
}

// parse makes the delivery as the provider made it.
func (d *delivery) parse(body []byte) {
	d.parsed = provider.Delivery{
		Method:       d.r.Method,
		URL:          d.h.publicURL(d.r),
		Query:        originalURL(d.r).RawQuery,
		Header:       d.r.Header,
		Body:         body,
		Placeholder:  d.repl.GetString,
		MaxDecoded:   d.h.MaxBody,
		Certificates: d.h.certificates,
	}
}

// unreadable tells why the body could not be read. What was read so far is put back in front of the rest, for observe
// mode.
func (d *delivery) unreadable(live io.ReadCloser, err error) *refusal {
	if d.body != nil {
		if d.h.observes() {
			start := bytes.Clone(d.body.bytes())
			d.r.Body = rest{io.MultiReader(bytes.NewReader(start), live), live}
		}
		d.body.release()
		d.body = nil
	}
	var tooLarge *http.MaxBytesError // request_body max_size
	switch {
	case errors.Is(err, errBufferFull):
		return refuse(resultOverloaded, http.StatusServiceUnavailable, err)
	case errors.Is(err, errBodyTooLarge), errors.As(err, &tooLarge):
		return refuse(resultTooLarge, http.StatusRequestEntityTooLarge, err)
	}
	return refuse(resultBadRequest, http.StatusBadRequest, fmt.Errorf("reading the body: %w", err))
}

// pass leaves a request that is no delivery to the later handlers, unless it is a handshake that the module answers.
func (d *delivery) pass() error {
	d.mark(resultPassed)
	if d.h.Handshake == handshakeAnswer && !d.h.observes() {
		d.parse(nil)
		if answered := d.answerHandshake(); answered {
			return nil
		}
	}
	return d.next.ServeHTTP(d.w, d.r)
}

// handshake passes the provider's test of the endpoint on, or answers it.
func (d *delivery) handshake() error {
	if d.h.Handshake == handshakeAnswer && !d.h.observes() {
		d.mark(resultPassed)
		if d.answerHandshake() {
			return nil
		}
	}
	return d.forwardUnclaimed(resultPassed)
}

// answerHandshake reports whether the delivery was a handshake that could be answered.
func (d *delivery) answerHandshake() bool {
	var keys []provider.Key
	if !d.h.SignatureOff {
		keys, _ = d.h.secrets.forRequest(d.repl, d.h.provider) // what has no value for this request cannot answer either
	}
	status, header, body, ok := d.h.provider.AnswerHandshake(&d.parsed, keys)
	if ok {
		maps.Copy(d.w.Header(), header)
		d.answer(status, body)
	}
	return ok
}

// isHandshake reports whether the delivery is the provider's test of the endpoint rather than an event, and whether
// such a test is signed.
func (d *delivery) isHandshake() (handshake, signed bool) {
	_, signed, handshake = d.h.provider.Handshake(&d.parsed)
	return handshake, signed
}

// identify finds the event's ID and its key. The key stays empty where there is no ID and on_missing_id is pass.
func (d *delivery) identify() *refusal {
	identity, err := d.h.provider.Identify(&d.parsed)
	d.eventType = shortened(identity.Type)
	switch {
	case err == nil:
		d.eventID, d.originalID = eventID(identity.Parts)
	case d.h.OnMissingID == missingIDReject:
		return refuse(resultMissingID, http.StatusBadRequest, err)
	case d.h.OnMissingID == missingIDHash:
		d.eventID = d.h.provider.BodyHash(&d.parsed) // empty where the body is: that tells no event from another
	}
	if d.eventID == "" {
		d.cause = err
		return nil
	}
	d.key = d.h.key(d.scope(), d.eventID).String()
	return nil
}

// scope tells the endpoint from others that are sent the same events.
func (d *delivery) scope() string {
	if d.h.Scope == "" {
		return defaultScope(d.r)
	}
	scope := d.repl.ReplaceAll(d.h.Scope, "")
	if scope == "" {
		d.h.limited.Error("scope has no value for this request; the host and path are used instead", zap.String("scope", d.h.Scope))
		return defaultScope(d.r)
	}
	return scope
}

// refuse answers the delivery without asking the application. In observe mode the application is asked all the same.
func (d *delivery) refuse(refused *refusal) error {
	d.cause = refused.cause
	if d.h.observes() {
		return d.forwardUnclaimed(refused.result)
	}
	d.mark(refused.result)
	if refused.retriable() {
		d.w.Header().Set("Retry-After", strconv.Itoa(d.retryAfter()))
	}
	d.answer(refused.status, nil)
	return nil
}

// retryAfter is in how many seconds it is worth trying again.
func (d *delivery) retryAfter() int {
	if d.record.Remaining > 0 {
		return max(1, min(60, int(math.Ceil(d.record.Remaining.Seconds()))))
	}
	return 5
}

// mark sets the result, for the provider, the placeholders and the log.
func (d *delivery) mark(r result) {
	d.result = r
	word := string(r)
	if d.h.observes() {
		word = "observe; " + word
	}
	d.w.Header()[resultHeader] = []string{word}
}

// answer writes an answer of the module's own. The HTTP/1 server would first read the beginning of a body that nobody
// has read, and so keep the answer from a client that waits for it.
func (d *delivery) answer(status int, body []byte) {
	if unread := d.body == nil && (d.r.ContentLength < 0 || d.r.ContentLength > maxDrained); unread && d.r.ProtoMajor == 1 {
		d.w.Header().Set("Connection", "close")
	}
	d.w.WriteHeader(status)
	if len(body) > 0 {
		_, _ = d.w.Write(body) // the client may be gone
	}
}

// placeholder gives the values of {http.webhook_dedup.*}.
func (d *delivery) placeholder(name string) (any, bool) {
	field, ok := strings.CutPrefix(name, "http.webhook_dedup.")
	if !ok {
		return nil, false
	}
	switch field {
	case "provider":
		return d.h.spec.ID, true
	case "event_id":
		return d.eventID, true
	case "event_type":
		return d.eventType, true
	case "key":
		return d.key, true
	case "result":
		return string(d.result), true
	case "attempt":
		return d.record.Attempts, true
	}
	return nil, false
}
