package webhookdedup

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// sendPlan is what `send` will do, checked as far as that is possible without sending anything.
type sendPlan struct {
	sender     *sender
	copies     int
	concurrent bool
	expect     expectation
	eventID    string // empty: none was found
}

// plan checks the flags and reads the files.
func (o *sendOptions) plan(stdin io.Reader) (*sendPlan, error) {
	if o.provider == "" {
		return nil, errors.New("--provider is missing: the provider to send as")
	}
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	if o.copies < 1 || o.copies > maxCopies {
		return nil, fmt.Errorf("--copies is %d; allowed are 1 to %d", o.copies, maxCopies)
	}
	if o.timeout < 0 {
		return nil, errors.New("--timeout is negative")
	}
	if o.file == "-" && o.secretFile == "-" {
		return nil, errors.New("--file and --secret-file can't both be stdin")
	}
	spec, err := o.lookup(o.provider)
	if err != nil {
		return nil, err
	}
	secret, err := o.readSecret(stdin, spec)
	if err != nil {
		return nil, err
	}
	public, err := checkPublicURL(o.publicURL)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	s := &sender{
		secret:    secret,
		client:    newSenderClient(o.insecure),
		timeout:   time.Duration(o.timeout),
		url:       target,
		publicURL: public,
		age:       time.Duration(o.age),
		tamper:    o.tamper,
	}
	setDefault(&s.timeout, spec.ResponseTimeout)
	setDefault(&s.timeout, defaultSendTimeout)
	p := &sendPlan{sender: s, copies: o.copies, concurrent: o.concurrent}
	if err := o.setEvent(p, spec, stdin); err != nil {
		return nil, err
	}
	return p, o.setExpectation(p)
}

func (o *sendOptions) target() (*url.URL, error) {
	if o.url == "" {
		return nil, errors.New("--url is missing: the endpoint to send to")
	}
	u, err := url.Parse(o.url)
	// The URL is not repeated: it may hold a password or a token.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("--url is not a URL of the form http[s]://host[:port]/path")
	}
	u.Fragment = ""
	return u, nil
}

// readSecret takes the secret from the flags or the environment.
func (o *sendOptions) readSecret(stdin io.Reader, spec provider.Spec) (string, error) {
	if o.secret != "" && o.secretFile != "" {
		return "", errors.New("--secret and --secret-file exclude each other")
	}
	if len(spec.Schemes) == 0 {
		if o.secretsGiven || o.tamper || o.ageGiven {
			return "", fmt.Errorf("%s has no signature: --secret, --tamper and --age have no use", spec.ID)
		}
		return "", nil
	}
	secret := o.secret
	switch {
	case o.secretFile != "":
		content, err := readAll(o.secretFile, stdin)
		if err != nil {
			return "", fmt.Errorf("reading --secret-file: %w", err)
		}
		secret = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	case !o.secretsGiven:
		secret = os.Getenv(secretEnv)
	}
	if strings.TrimSpace(secret) == "" {
		return "", fmt.Errorf("no secret to sign with, or an empty one: set $%s, or use --secret-file or --secret", secretEnv)
	}
	return secret, nil
}

// readAll reads a file, or stdin where its name is -.
func readAll(name string, stdin io.Reader) ([]byte, error) {
	const limit = 64 << 20
	var from = stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return content, err
}

// setEvent makes the event: the provider's sample, or what the file holds.
func (o *sendOptions) setEvent(p *sendPlan, spec provider.Spec, stdin io.Reader) error {
	id := o.id
	if id == "" {
		var err error
		if id, err = freshID(); err != nil {
			return err
		}
	}
	example := spec.Example(id, time.Now().Add(-time.Duration(o.age)))
	s := p.sender
	s.method, s.header, s.body = example.Method, example.Header, example.Body
	if example.Query != "" && s.url.RawQuery == "" {
		s.url.RawQuery = example.Query
	}
	if o.file != "" {
		content, err := readAll(o.file, stdin)
		if err != nil {
			return fmt.Errorf("reading --file: %w", err)
		}
		captured, err := parseCaptured(content)
		if err != nil {
			return fmt.Errorf("--file %s: %w", o.file, err)
		}
		spec = captured.replay(s, spec, example, id, o.idGiven)
	}
	if o.method != "" {
		s.method = strings.ToUpper(o.method)
	}
	var err error
	if s.provider, err = provider.Compile(spec); err != nil {
		return err
	}
	if !s.provider.IsDelivery(s.method) {
		return fmt.Errorf("%s is not a method of %s's deliveries", s.method, spec.ID)
	}
	if err := o.addHeaders(s, spec); err != nil {
		return err
	}
	if s.header.Get("User-Agent") == "" {
		s.header.Set("User-Agent", "caddy-webhook-dedup-send")
	}
	return o.identify(p, id)
}

// addHeaders sets the headers of --header.
func (o *sendOptions) addHeaders(s *sender, spec provider.Spec) error {
	given := http.Header{}
	for i, line := range o.headers {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("--header %d is not of the form 'Name: value'", i+1)
		}
		name = http.CanonicalHeaderKey(name)
		if name == "Host" {
			s.host = value
			continue
		}
		if slices.Contains(signatureHeaders(spec), name) {
			return fmt.Errorf("--header %s: this header is set by signing", name)
		}
		given[name] = append(given[name], value)
	}
	for name, values := range given {
		s.header[name] = values
	}
	return nil
}

// signatureHeaders are the headers that signing sets.
func signatureHeaders(spec provider.Spec) []string {
	var names []string
	for _, scheme := range spec.Schemes {
		names = append(names, http.CanonicalHeaderKey(scheme.Header))
		if t := scheme.Timestamp; t != nil && t.From == provider.FromHeader {
			names = append(names, http.CanonicalHeaderKey(t.Name))
		}
	}
	return names
}

// identify signs one delivery for a trial, and finds out what the endpoint will take for the event's ID.
func (o *sendOptions) identify(p *sendPlan, id string) error {
	s := p.sender
	d, err := s.delivery()
	if err != nil {
		return fmt.Errorf("preparing the delivery: %w", err)
	}
	if s.secret != "" {
		if err := s.provider.Sign(d, s.secret, time.Now()); err != nil {
			return err
		}
	}
	identity, err := s.provider.Identify(d)
	if err == nil {
		p.eventID, _ = eventID(identity.Parts)
	}
	if o.idGiven && !slices.Contains(identity.Parts, id) {
		return errors.New("--id has no effect: the event's ID is in the body of --file, or is a digest of it")
	}
	return nil
}

// setExpectation finds out what should become of the deliveries.
func (o *sendOptions) setExpectation(p *sendPlan) error {
	tolerance, timestamped := p.sender.provider.DefaultTolerance()
	if o.ageGiven {
		inBody := slices.ContainsFunc(p.sender.provider.Spec().Schemes, func(s provider.Scheme) bool {
			return s.Timestamp != nil && s.Timestamp.From == provider.FromJSON
		})
		switch {
		case !timestamped:
			return fmt.Errorf("%s signs no timestamp: --age has no effect", o.provider)
		case inBody && o.file != "":
			return fmt.Errorf("%s has its timestamp in the body, and that is in --file: --age has no effect", o.provider)
		}
	}
	if o.tamper && slices.ContainsFunc(p.sender.provider.Spec().Schemes, leavesBodyUnsigned) {
		return fmt.Errorf("%s does not sign the whole body: --tamper would not be noticed", o.provider)
	}
	p.expect = expectOnce
	if o.tamper || p.sender.age.Abs() > tolerance && timestamped {
		p.expect = expectRefused
	}
	if o.expect != "" {
		p.expect = expectation(o.expect)
		if !slices.Contains([]expectation{expectOnce, expectRefused, expectDuplicate}, p.expect) {
			return fmt.Errorf("--expect is %q; allowed are once, refused, duplicate", o.expect)
		}
	}
	return nil
}

func (p *sendPlan) eventName() string {
	if p.eventID == "" {
		return "without an ID"
	}
	return p.eventID
}

// shownURL is the URL without what may be secret in it.
func (p *sendPlan) shownURL() string {
	u := *p.sender.url
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// leavesBodyUnsigned reports whether a delivery can be changed without its signature noticing.
func leavesBodyUnsigned(s provider.Scheme) bool {
	return s.Algorithm == "token" || s.Algorithm == "basic" || s.BodyUnsigned || s.Each != ""
}
