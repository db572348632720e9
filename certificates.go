package webhookdedup

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// Bounds of fetching certificates. Only addresses that match the provider's pattern are asked for, but within it anybody
// can name as many as he likes.
const (
	certificateTimeout   = 5 * time.Second
	maxCertificates      = 16 // that are kept or being fetched
	certificateRetention = 24 * time.Hour
	certificateRetry     = 10 * time.Second // after a failure
)

var errTooManyCertificates = errors.New("too many different certificates are named")

// certificateFile is a chain that was configured; whatever address a delivery names, this is its certificate.
type certificateFile struct{ chain *provider.Certificates }

func (f certificateFile) Certificates(string) (*provider.Certificates, error) { return f.chain, nil }

func loadCertificate(path string) (provider.CertificateSource, error) {
	expanded, err := caddy.NewReplacer().ReplaceOrErr(path, true, true)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	pem, err := os.ReadFile(expanded)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	trusted := x509.NewCertPool() // what the operator has put there is trusted, as long as it is valid
	trusted.AppendCertsFromPEM(pem)
	chain, err := provider.ParseCertificates(pem, trusted)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", expanded, err)
	}
	return certificateFile{chain}, nil
}

// certificateFetcher fetches each certificate once and keeps it for a day.
type certificateFetcher struct {
	client *http.Client

	mu    sync.Mutex
	known map[string]*fetched
}

type fetched struct {
	done  chan struct{}
	at    time.Time
	chain *provider.Certificates
	err   error
}

// certificates is shared by all routes: what one has fetched, the others need not.
var certificates = &certificateFetcher{
	client: &http.Client{
		Timeout:       certificateTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	},
	known: map[string]*fetched{},
}

// Certificates returns the chain at the address, which the provider package has checked against the provider's pattern.
func (f *certificateFetcher) Certificates(url string) (*provider.Certificates, error) {
	entry, first := f.entry(url)
	if entry == nil {
		return nil, errTooManyCertificates
	}
	if first {
		entry.chain, entry.err = f.fetch(url)
		entry.at = time.Now()
		close(entry.done)
	}
	<-entry.done // bounded by the timeout of the one that fetches
	return entry.chain, entry.err
}

// entry returns what is known of the address, and whether the caller has to fetch it; nil where there is no room.
func (f *certificateFetcher) entry(url string) (entry *fetched, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if entry := f.known[url]; entry != nil && !entry.over() {
		return entry, false
	}
	for other, entry := range f.known {
		if entry.over() {
			delete(f.known, other)
		}
	}
	if len(f.known) >= maxCertificates {
		return nil, false
	}
	entry = &fetched{done: make(chan struct{})}
	f.known[url] = entry
	return entry, true
}

// over reports whether it is time to fetch again.
func (e *fetched) over() bool {
	select {
	case <-e.done:
	default:
		return false
	}
	if e.err != nil {
		return time.Since(e.at) > certificateRetry
	}
	return time.Since(e.at) > certificateRetention
}

func (f *certificateFetcher) fetch(url string) (*provider.Certificates, error) {
	ctx, cancel := context.WithTimeout(context.Background(), certificateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetching the provider's certificate: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching the provider's certificate: status %d", response.StatusCode)
	}
	pem, err := io.ReadAll(io.LimitReader(response.Body, provider.MaxCertificates+1))
	if err != nil {
		return nil, fmt.Errorf("fetching the provider's certificate: %w", err)
	}
	return provider.ParseCertificates(pem, nil)
}
