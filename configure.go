package webhookdedup

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// The words that config fields allow.
const (
	inFlightWait   = "wait"
	inFlightReject = "reject"
	inFlightAccept = "accept"

	missingIDPass   = "pass"
	missingIDHash   = "hash"
	missingIDReject = "reject"

	storeErrorReject = "reject"
	storeErrorPass   = "pass"

	batchWhole  = "whole"
	batchFilter = "filter"

	handshakePass   = "pass"
	handshakeAnswer = "answer"

	modeEnforce = "enforce"
	modeObserve = "observe"
)

// Defaults of the handler.
const (
	defaultLease        = 30 * time.Second
	defaultTimeout      = 2 * time.Minute
	defaultStoreTimeout = 500 * time.Millisecond
	defaultMaxResponse  = 1 << 20
	defaultReplaySize   = 64 << 10
	longestDefaultWait  = 25 * time.Second
	unknownTimeoutWait  = 8 * time.Second
	shortestKeep        = time.Hour
)

// configure checks every field and sets the defaults.
func (h *Handler) configure(ctx caddy.Context) error {
	app, err := ctx.App("webhook_dedup")
	if err != nil {
		return err
	}
	h.app = app.(*App)
	if err := h.configureProvider(); err != nil {
		return err
	}
	if err := h.configureTimes(); err != nil {
		return err
	}
	if err := h.configurePolicies(); err != nil {
		return err
	}
	if h.publicURLBase, err = checkPublicURL(h.PublicURL); err != nil {
		return err
	}
	if err := h.checkForwardKey(); err != nil {
		return err
	}
	if h.Scope != "" && caddy.NewReplacer().ReplaceKnown(h.Scope, "") == "" {
		return fmt.Errorf("scope %q has no value: all endpoints would hide each other's events", h.Scope)
	}
	h.allow = h.allowedMethods()
	h.certificates = certificates
	if h.Certificate != "" {
		if h.certificates, err = loadCertificate(h.Certificate); err != nil {
			return err
		}
	}
	own, err := loadStore(ctx, h, h.StoreRaw)
	if err != nil {
		return err
	}
	if h.store = own; own == nil {
		h.store = h.app.store
	}
	return nil
}

// checkForwardKey refuses names under which the event ID would change what else the request says.
func (h *Handler) checkForwardKey() error {
	if h.ForwardKey == "" {
		return nil
	}
	name := http.CanonicalHeaderKey(h.ForwardKey)
	taken := []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection", "Upgrade", "Te",
		"Trailer", "Expect", "Authorization", "Cookie", resultHeader, keyHeader, attemptHeader}
	for _, scheme := range h.spec.Schemes {
		taken = append(taken, http.CanonicalHeaderKey(scheme.Header))
	}
	if !httpguts.ValidHeaderFieldName(h.ForwardKey) || slices.Contains(taken, name) {
		return fmt.Errorf("forward_key %q; allowed is the name of a header that means nothing else, such as Idempotency-Key", h.ForwardKey)
	}
	h.ForwardKey = name
	return nil
}

// allowedMethods is what a 405 tells the client.
func (h *Handler) allowedMethods() string {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"} {
		if len(allowed) < 3 || h.provider.IsDelivery(method) {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
}

func (h *Handler) configureProvider() error {
	if h.Provider == "" {
		return errors.New("no provider; allowed are " + h.app.providerNames())
	}
	spec, err := h.app.lookup(h.Provider)
	if err != nil {
		return err
	}
	if h.Signature != nil {
		if h.SignatureOff {
			return errors.New("signature and signature_off exclude each other")
		}
		spec.Schemes = []provider.Scheme{*h.Signature}
	}
	if len(h.ID) > 0 {
		spec.EventID, spec.Fallbacks, spec.Batch = h.ID, nil, nil
	}
	if h.provider, err = provider.Compile(spec); err != nil {
		return fmt.Errorf("provider %s: %w", h.Provider, err)
	}
	h.spec = spec
	switch {
	case h.SignatureOff && len(h.Secrets) > 0:
		return errors.New("a secret has no use with signature off")
	case h.SignatureOff:
		return nil
	case len(spec.Schemes) == 0:
		return fmt.Errorf("provider %s has no signature; set one, or signature off", h.Provider)
	case len(h.Secrets) == 0:
		return errors.New("no secret; set at least one, or signature off")
	}
	h.secrets, err = loadSecrets(h.Secrets, h.provider)
	return err
}

func (h *Handler) configureTimes() error {
	err := positive("ttl", h.TTL, "lease", h.Lease, "timeout", h.Timeout, "store_timeout", h.StoreTimeout)
	if err != nil {
		return err
	}
	setDefault(&h.TTL, caddy.Duration(h.spec.TTL)) // which is at least twice as long as the provider retries, unless its events repeat
	setDefault(&h.Lease, caddy.Duration(defaultLease))
	setDefault(&h.Timeout, caddy.Duration(defaultTimeout))
	setDefault(&h.StoreTimeout, caddy.Duration(defaultStoreTimeout))
	if h.Lease < 6*h.StoreTimeout {
		return fmt.Errorf("lease %s is shorter than six times store_timeout %s; a renewal that has to be repeated would come too late",
			time.Duration(h.Lease), time.Duration(h.StoreTimeout))
	}
	if h.TTL < caddy.Duration(time.Millisecond) || h.StoreTimeout < caddy.Duration(time.Millisecond) {
		return errors.New("ttl and store_timeout must be at least 1ms")
	}
	h.keep = max(time.Duration(h.Lease), h.spec.Retry.Window, shortestKeep)
	switch {
	case h.Tolerance < 0:
		h.tolerance = -1
	case h.Tolerance > 0:
		h.tolerance = time.Duration(h.Tolerance)
	default:
		h.tolerance, _ = h.provider.DefaultTolerance()
	}
	return nil
}

func (h *Handler) configurePolicies() error {
	setDefault(&h.Mode, modeEnforce)
	setDefault(&h.Batch, batchWhole)
	setDefault(&h.Handshake, handshakePass)
	missingID := missingIDPass
	if h.spec.BodyHashSafe {
		missingID = missingIDHash
	}
	setDefault(&h.OnMissingID, missingID)
	storeError := storeErrorReject
	if !h.spec.Retry.OnStatus(http.StatusServiceUnavailable) {
		storeError = storeErrorPass
	}
	setDefault(&h.OnStoreError, storeError)
	for _, field := range []struct {
		name, value string
		allowed     []string
	}{
		{"batch", h.Batch, []string{batchWhole, batchFilter}},
		{"handshake", h.Handshake, []string{handshakePass, handshakeAnswer}},
		{"mode", h.Mode, []string{modeEnforce, modeObserve}},
		{"on_missing_id", h.OnMissingID, []string{missingIDPass, missingIDHash, missingIDReject}},
		{"on_store_error", h.OnStoreError, []string{storeErrorReject, storeErrorPass}},
	} {
		if !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s is %q; allowed are %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	if h.Batch == batchFilter && h.spec.Batch == nil {
		return fmt.Errorf("batch filter: deliveries of %s carry one event each", h.Provider)
	}
	if err := h.configureInFlight(); err != nil {
		return err
	}
	return h.configureAnswers()
}

func (h *Handler) configureInFlight() error {
	var set InFlight
	if h.InFlight != nil {
		set = *h.InFlight
	}
	setDefault(&set.Action, inFlightWait)
	if !slices.Contains([]string{inFlightWait, inFlightReject, inFlightAccept}, set.Action) {
		return fmt.Errorf("in_flight is %q; allowed are wait, reject, accept", set.Action)
	}
	if err := positive("in_flight wait", set.Wait); err != nil {
		return err
	}
	if set.Status != 0 && (set.Status < 400 || set.Status > 599) {
		return fmt.Errorf("in_flight status is %d; allowed are 400 to 599", set.Status)
	}
	h.inFlight = set.Action
	setDefault(&set.Status, h.spec.InFlightStatus)
	setDefault(&set.Status, http.StatusServiceUnavailable)
	h.inFlightStatus = set.Status
	if h.wait = time.Duration(set.Wait); h.wait == 0 {
		h.wait = defaultWait(h.spec.ResponseTimeout)
	}
	return nil
}

// defaultWait leaves the provider time to read the answer before it hangs up.
func defaultWait(responseTimeout time.Duration) time.Duration {
	if responseTimeout == 0 {
		return unknownTimeoutWait
	}
	margin := max(500*time.Millisecond, responseTimeout/5)
	return max(0, min(responseTimeout-margin, longestDefaultWait))
}

func (h *Handler) configureAnswers() error {
	if len(h.Acknowledge) == 0 {
		h.Acknowledge = []string{"2xx"}
	}
	for _, word := range h.Acknowledge {
		if !h.acknowledged.add(word) {
			return fmt.Errorf("acknowledge %q; allowed are statuses from 200 to 499 and 2xx, 3xx, 4xx", word)
		}
	}
	if h.Duplicate == nil {
		h.Duplicate = &Duplicate{Replay: h.spec.Replay}
	}
	setDefault(&h.Duplicate.Status, http.StatusOK)
	if h.Duplicate.Status < 200 || h.Duplicate.Status > 299 {
		return fmt.Errorf("duplicate status is %d; allowed are 200 to 299, because a provider retries on any other", h.Duplicate.Status)
	}
	if h.Duplicate.Body != "" && h.Duplicate.Status == http.StatusNoContent {
		return errors.New("duplicate 204 takes no body")
	}
	setDefault(&h.Duplicate.MaxSize, int64(defaultReplaySize))
	setDefault(&h.MaxBody, h.spec.MaxBody)
	setDefault(&h.MaxBody, int64(provider.DefaultMaxBody))
	setDefault(&h.MaxResponse, int64(defaultMaxResponse))
	for name, size := range map[string]int64{"max_body": h.MaxBody, "max_response": h.MaxResponse, "duplicate replay": h.Duplicate.MaxSize} {
		if size < 0 {
			return fmt.Errorf("%s is %d; allowed are positive sizes", name, size)
		}
	}
	if h.Duplicate.Replay {
		h.replayLimit = h.Duplicate.MaxSize
	}
	return nil
}

// checkPublicURL returns scheme, host and path prefix without a trailing slash.
func checkPublicURL(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	expanded, err := caddy.NewReplacer().ReplaceOrErr(s, true, true)
	if err != nil {
		return "", fmt.Errorf("public_url: %w", err)
	}
	u, err := url.Parse(expanded)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("public_url %q; allowed is scheme://host[:port][/prefix] with http or https", s)
	}
	return strings.TrimSuffix(expanded, "/"), nil
}

// setDefault gives a field that was not configured its value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// positive checks pairs of a name and a caddy.Duration, which may be zero where it is not configured.
func positive(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if d := pairs[i+1].(caddy.Duration); d < 0 {
			return fmt.Errorf("%s is %s; allowed are positive durations such as 30s or 7d", pairs[i], time.Duration(d))
		}
	}
	return nil
}

func parseStatus(word string, from, to int) (int, error) {
	status, err := strconv.Atoi(word)
	if err != nil || status < from || status > to {
		return 0, fmt.Errorf("%q is no status; allowed are %d to %d", word, from, to)
	}
	return status, nil
}

// providerNames lists all providers for an error message.
func (a *App) providerNames() string {
	var names []string
	for _, spec := range provider.All() {
		names = append(names, spec.ID)
	}
	for name := range a.Providers {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// located adds the place of the configuration to an error, where it is known.
func located(at string, err error) error {
	if at == "" {
		return err
	}
	return fmt.Errorf("%s: %w", at, err)
}
