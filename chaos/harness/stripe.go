package harness

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Event is what a provider has to tell.
type Event struct {
	ID   string
	Body []byte
}

// NewEvent returns a Stripe event with that ID, its size that of an ordinary one.
func NewEvent(id string) Event {
	body := fmt.Sprintf(`{"id":%q,"object":"event","type":"charge.succeeded","livemode":false,`+
		`"data":{"object":{"id":"ch_%s","amount":4200,"currency":"eur","note":%q}}}`, id, id, PrivateMark)
	return Event{ID: id, Body: []byte(body)}
}

// PrivateMark is part of every body that [NewEvent] makes; it must never turn up in a log.
const PrivateMark = "nobody-but-the-application-reads-this"

// SignStripe returns a Stripe-Signature for body, made at that time.
func SignStripe(secret string, body []byte, at time.Time) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), StripeMAC(secret, strconv.FormatInt(at.Unix(), 10), body))
}

// StripeMAC is the signature proper: hex HMAC-SHA256 over timestamp, a full stop and the body.
func StripeMAC(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// Stripe is a provider that delivers to one URL.
type Stripe struct {
	Secret string
	URL    string
	HTTP2  bool // prior knowledge, without TLS
	client *http.Client
}

// NewStripe returns a provider whose connections are closed when the test ends.
func NewStripe(t testing.TB, url, secret string, http2 bool) *Stripe {
	s := &Stripe{Secret: secret, URL: url, HTTP2: http2, client: newClient(http2, new(net.Dialer).DialContext)}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// Disconnect closes the connections that are not in use.
func (s *Stripe) Disconnect() { s.client.CloseIdleConnections() }

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newClient(http2 bool, dial dialer) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Client{
		Transport: &http.Transport{
			Protocols: protocols, MaxIdleConnsPerHost: 64, DisableCompression: true, DialContext: dial,
		},
		// A provider takes a redirect for a failure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       2 * time.Minute,
	}
}

// Answer is what the provider was told.
type Answer struct {
	Status int    // 0 where there was no whole answer
	Result string // the Webhook-Dedup header
	Header http.Header
	Body   string
	Err    error
	Took   time.Duration
}

// Accepted reports whether the provider will not deliver again.
func (a Answer) Accepted() bool { return a.Err == nil && a.Status/100 == 2 }

// String is for messages of tests.
func (a Answer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("no answer after %s: %v", a.Took.Round(time.Millisecond), a.Err)
	}
	return fmt.Sprintf("%d %q after %s", a.Status, a.Result, a.Took.Round(time.Millisecond))
}

// Request returns a freshly signed delivery of e.
func (s *Stripe) Request(e Event) *http.Request {
	r, err := http.NewRequest(http.MethodPost, s.URL, bytes.NewReader(e.Body))
	if err != nil {
		panic(err) // the URL comes from the test
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	r.Header.Set("Stripe-Signature", SignStripe(s.Secret, e.Body, time.Now()))
	return r
}

// Deliver delivers e once.
func (s *Stripe) Deliver(e Event) Answer { return s.Do(s.Request(e)) }

// Do sends a request that the caller made.
func (s *Stripe) Do(r *http.Request) Answer {
	start := time.Now()
	resp, err := s.client.Do(r)
	if err != nil {
		return Answer{Err: err, Took: time.Since(start)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a := Answer{
		Status: resp.StatusCode, Result: resp.Header.Get("Webhook-Dedup"), Header: resp.Header,
		Body: string(body), Err: err, Took: time.Since(start),
	}
	if err != nil {
		a.Status = 0
	}
	return a
}

// HangUp delivers e, waits no longer than patience for the answer and then closes the connection. It reports an error if
// there was an answer.
func (s *Stripe) HangUp(e Event, patience time.Duration) error {
	// On a connection of its own: with HTTP/2, too, all of it is gone afterwards.
	dialled := make(chan net.Conn, 1)
	lone := newClient(s.HTTP2, func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			dialled <- conn
		}
		return conn, err
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := lone.Do(s.Request(e).WithContext(ctx))
	if err == nil {
		resp.Body.Close()
		err = fmt.Errorf("answered with %s before the provider hung up", resp.Status)
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	select {
	case conn := <-dialled:
		conn.Close()
	default:
	}
	return err
}

// Copies delivers e n times at once.
func (s *Stripe) Copies(e Event, n int) []Answer {
	answers := make([]Answer, n)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.Deliver(e) })
	}
	wg.Wait()
	return answers
}

// UntilAccepted delivers e until it is told 2xx, with a pause between deliveries, for no longer than limit after the
// first. It returns all answers.
func (s *Stripe) UntilAccepted(e Event, pause, limit time.Duration) []Answer {
	var answers []Answer
	for deadline := time.Now().Add(limit); ; time.Sleep(pause) {
		a := s.Deliver(e)
		answers = append(answers, a)
		if a.Accepted() || time.Now().After(deadline) {
			return answers
		}
	}
}
