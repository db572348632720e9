package webhookdedup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
)

var errUnhandled = errors.New("no handler after webhook_dedup answered the request")

// outcome is how one run of the application ended.
type outcome struct {
	status   int   // of the application's answer, or the status that stands for err
	err      error // nil where the application answered whole
	panicked any   // what a later handler panicked with, where it did
	// unknown: the application may have processed the event although its answer never arrived whole.
	unknown bool
}

// run calls the later handlers with a request that outlives its client: it ends at the route's timeout, not when the
// provider hangs up, because an application that finishes at 11 s for a provider that left at 10 s is the classic
// duplicate. It stays synchronous, because Caddy's request state is not made to be shared.
func (d *delivery) run(res *response) (end outcome) {
	if !d.running { // the second round of a batch is counted already
		d.running = true
		runs.add()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.r.Context()), time.Duration(d.h.Timeout))
	defer cancel()
	request, upstream := d.detached(ctx)
	defer func() {
		if upstream != nil {
			upstream.abandon()
		}
		if p := recover(); p != nil {
			end = outcome{status: http.StatusBadGateway, err: fmt.Errorf("a later handler panicked: %v", p), panicked: p, unknown: true}
			if p != http.ErrAbortHandler {
				end.status = http.StatusInternalServerError
				d.h.limited.Error("panic in a later handler", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			} else {
				end.err = errors.New("the application's answer was cut off")
			}
		}
	}()
	err := d.next.ServeHTTP(res, request)
	switch {
	case err != nil:
		return outcome{status: errorStatus(err), err: err, unknown: !neverSent(err)}
	case res.status == 0:
		if unhandled, _ := caddyhttp.GetVar(ctx, "unhandled").(bool); unhandled {
			return outcome{status: http.StatusBadGateway, err: errUnhandled}
		}
		res.status = http.StatusOK // what net/http makes of a handler that writes nothing
	}
	return outcome{status: res.status}
}

// detached is the request as the application gets it, and the reader of its body if it has one. GetBody stays nil: with
// it, Go's transport resends a POST that carries an Idempotency-Key by itself.
func (d *delivery) detached(ctx context.Context) (*http.Request, *bodyReader) {
	request := d.r.WithContext(ctx)
	body := cmp.Or(d.filtered, d.body)
	if body == nil {
		return request, nil
	}
	request.ContentLength = int64(len(body.bytes()))
	request.TransferEncoding = nil
	request.Trailer = nil
	if request.ContentLength == 0 {
		request.Body = http.NoBody
		request.Header = hideIdempotencyKeys(request.Header)
		return request, nil
	}
	reader := body.reader()
	request.Body = reader
	return request, reader
}

// hideIdempotencyKeys writes these headers in lower case, which means the same to the application. Go's transport looks
// for them in their usual case, and resends a request without a body that has one.
func hideIdempotencyKeys(h http.Header) http.Header {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			h = h.Clone()
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
	return h
}

// errorStatus is the status that stands for the error of a later handler: never one that says success.
func errorStatus(err error) int {
	var handlerError caddyhttp.HandlerError
	if errors.As(err, &handlerError) && handlerError.StatusCode >= 400 && handlerError.StatusCode <= 599 {
		return handlerError.StatusCode
	}
	return http.StatusInternalServerError
}

// neverSent reports whether err says that no connection to the application came about.
func neverSent(err error) bool {
	var dial reverseproxy.DialError
	var op *net.OpError
	return errors.As(err, &dial) || errors.As(err, &op) && op.Op == "dial"
}

// stripUpgrade removes what would turn a delivery into something else than a request with one answer.
func stripUpgrade(h http.Header) {
	h.Del("Upgrade")
	h.Del("Expect") // the body is here already
	if values, ok := h["Connection"]; ok {
		kept := slices.DeleteFunc(strings.Split(strings.Join(values, ","), ","), func(token string) bool {
			token = strings.TrimSpace(token)
			return token == "" || strings.EqualFold(token, "upgrade")
		})
		if len(kept) == 0 {
			h.Del("Connection")
		} else {
			h.Set("Connection", strings.Join(kept, ","))
		}
	}
}

// Headers that tell the application which event this is, and the provider what became of its delivery.
const (
	resultHeader  = "Webhook-Dedup"
	keyHeader     = "Webhook-Dedup-Key"
	attemptHeader = "Webhook-Dedup-Attempt"
)

// stripOwn removes what the sender put under the module's names, also in spellings that CGI-like gateways would take
// for them.
func stripOwn(h http.Header, forwardKey string) {
	for name := range h {
		canonical := name
		if strings.ContainsAny(name, "_.") {
			canonical = http.CanonicalHeaderKey(strings.Map(dashed, name))
		}
		if canonical == keyHeader || canonical == attemptHeader || forwardKey != "" && canonical == forwardKey {
			delete(h, name)
		}
	}
}

func dashed(r rune) rune {
	if r == '_' || r == '.' {
		return '-'
	}
	return r
}

// tell adds the headers for the application. attempt is 0 where the event is not claimed.
func (d *delivery) tell(attempt int) {
	if d.eventID == "" {
		return
	}
	d.r.Header[keyHeader] = []string{d.h.spec.ID + ":" + d.eventID}
	if attempt > 0 {
		d.r.Header[attemptHeader] = []string{strconv.Itoa(attempt)}
	}
	if d.h.ForwardKey != "" {
		d.r.Header.Set(d.h.ForwardKey, d.eventID)
	}
}
