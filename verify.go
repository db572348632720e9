package webhookdedup

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// secrets are the keys that a provider may sign with.
type secrets struct {
	keys     []provider.Key // of secrets that are known at load
	perQuery []string       // templates that differ from request to request
}

// placeholderPattern finds what may be a placeholder, and so is not known before it has been expanded.
var placeholderPattern = regexp.MustCompile(`\{[A-Za-z_$][^{}\s]*\}`)

// errSecretUnknown: a placeholder of a secret has no value for this request.
var errSecretUnknown = errors.New("a placeholder in the secret has no value")

// loadSecrets prepares what can be known at load. A template with placeholders that only a request can fill is kept; a
// value is never taken for a template again.
func loadSecrets(templates []string, p *provider.Compiled) (*secrets, error) {
	known := caddy.NewReplacer()
	s := new(secrets)
	for i, template := range templates {
		if template == "" {
			return nil, fmt.Errorf("secret %d is empty", i+1)
		}
		if needsRequest(template, known) {
			s.perQuery = append(s.perQuery, template)
			continue
		}
		value, err := known.ReplaceOrErr(template, true, false)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		key, err := p.Key(value)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// needsRequest reports whether template has a placeholder that is not known at load.
func needsRequest(template string, known *caddy.Replacer) bool {
	for _, name := range placeholderPattern.FindAllString(template, -1) {
		if _, ok := known.Get(name[1 : len(name)-1]); !ok {
			return true
		}
	}
	return false
}

// unknown returns the placeholders that are neither of a request nor of anything else that Caddy has by itself.
func (s *secrets) unknown() (names []string) {
	for _, template := range s.perQuery {
		for _, name := range placeholderPattern.FindAllString(template, -1) {
			if !strings.HasPrefix(name, "{http.") {
				names = append(names, name)
			}
		}
	}
	return names
}

// forRequest returns the keys for one request. Secrets without a value for it are left out, and reported.
func (s *secrets) forRequest(repl *caddy.Replacer, p *provider.Compiled) ([]provider.Key, error) {
	if len(s.perQuery) == 0 {
		return s.keys, nil
	}
	keys := s.keys[:len(s.keys):len(s.keys)]
	var failed error
	for _, template := range s.perQuery {
		value, err := repl.ReplaceOrErr(template, true, true)
		if err != nil {
			failed = errSecretUnknown
			continue
		}
		key, err := p.Key(value)
		if err != nil {
			failed = err
			continue
		}
		keys = append(keys, key)
	}
	return keys, failed
}

// verify checks the delivery against the raw bytes of its body. Whatever is wrong with a signature is told to the
// provider as 401.
func (d *delivery) verify() *refusal {
	if d.h.SignatureOff {
		return nil
	}
	keys, err := d.h.secrets.forRequest(d.repl, d.h.provider)
	if err != nil {
		d.h.sampled.Error("no usable secret for this request", zap.String("provider", d.h.spec.ID),
			zap.String("host", d.r.Host), zap.Error(err))
	}
	if len(keys) == 0 {
		return refuse(resultInvalidSignature, http.StatusUnauthorized, provider.ErrNoKey)
	}
	if err := d.h.provider.Verify(&d.parsed, keys, time.Now(), d.h.tolerance); err != nil {
		return refuse(resultInvalidSignature, http.StatusUnauthorized, err)
	}
	return nil
}
