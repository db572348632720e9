package webhookdedup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// sender delivers one event as its provider does: each delivery is signed anew and has a connection of its own.
type sender struct {
	provider *provider.Compiled
	secret   string // empty where the provider signs nothing
	client   *http.Client
	timeout  time.Duration

	method string
	url    *url.URL
	host   string      // of the Host header; empty: the URL's
	header http.Header // all but what signing sets
	body   []byte

	publicURL string        // scheme, host and path prefix as the endpoint's public_url has them; empty: the URL's
	age       time.Duration // of the signed timestamp
	tamper    bool
}

// attempt is what came of one delivery, as the provider sees it.
type attempt struct {
	status int
	result string // the Webhook-Dedup header
	took   time.Duration
	err    error // there was no answer, or no whole one
}

// newSenderClient makes a client that does nothing by itself: no redirects, no compression, no second try.
func newSenderClient(insecure bool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.DisableCompression = true
	if insecure {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// delivery is the event as the provider package sees it, unsigned.
func (s *sender) delivery() (*provider.Delivery, error) {
	r, err := http.NewRequest(s.method, s.url.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header = s.header.Clone()
	if r.Host = s.host; r.Host == "" {
		r.Host = s.url.Host
	}
	base := s.publicURL
	if base == "" {
		base = s.url.Scheme + "://" + r.Host
	}
	return &provider.Delivery{
		Method:      s.method,
		URL:         base + s.url.RequestURI(),
		Query:       s.url.RawQuery,
		Header:      r.Header,
		Body:        s.body,
		Placeholder: caddyhttp.NewTestReplacer(r).GetString, // the only exported way to {http.request.*}
	}, nil
}

// prepare makes the signed request of one delivery.
func (s *sender) prepare(ctx context.Context) (*http.Request, error) {
	d, err := s.delivery()
	if err != nil {
		return nil, err
	}
	if s.secret != "" {
		if err := s.provider.Sign(d, s.secret, time.Now().Add(-s.age)); err != nil {
			return nil, err
		}
	}
	body := d.Body // with the signature, where that is a part of it
	if s.tamper {
		body = append(bytes.Clone(body), ' ') // any JSON or form stays what it was
	}
	target := *s.url
	target.RawQuery = d.Query // some sign a digest of the body there
	r, err := http.NewRequestWithContext(ctx, s.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header, r.Host = d.Header, s.host
	r.GetBody = nil // with it, net/http itself would repeat a delivery that has an Idempotency-Key
	return r, nil
}

// send makes one delivery and waits for the answer. ready, where there is one, is waited for when all is prepared.
func (s *sender) send(ctx context.Context, ready <-chan struct{}) attempt {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := s.prepare(ctx)
	if err != nil {
		return attempt{err: err}
	}
	if ready != nil {
		<-ready
	}
	began := time.Now() // before the timer, so that what it ends has taken at least that long
	timer := time.AfterFunc(s.timeout, cancel)
	defer timer.Stop()
	res, err := s.client.Do(r)
	if err != nil {
		return attempt{took: time.Since(began), err: s.noAnswer(err, time.Since(began))}
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	a := attempt{status: res.StatusCode, result: res.Header.Get(resultHeader), took: time.Since(began)}
	if err != nil {
		a.err = fmt.Errorf("the answer broke off: %w", err)
	}
	return a
}

// errHungUp: the sender's patience was over before there was an answer.
var errHungUp = errors.New("hung up")

// noAnswer says why there was none, without the URL: that may hold a token.
func (s *sender) noAnswer(err error, after time.Duration) error {
	if after >= s.timeout && errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w after %s without an answer", errHungUp, shortDuration(s.timeout))
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}

// freshID is an event ID that no event had before. It has 15 digits because that is an ID wherever one may stand: in a
// header, in a JSON string, and as a JSON number.
func freshID() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(9e14))
	if err != nil {
		return "", fmt.Errorf("making an event ID: %w", err)
	}
	return new(big.Int).Add(n, big.NewInt(1e14)).String(), nil
}
