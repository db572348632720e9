package provider

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// CertificateSource gives the certificates that deliveries name. The package fetches nothing itself: an implementation fetches
// once, remembers, and bounds both.
type CertificateSource interface {
	// Certificates returns the chain at the URL, which has been checked against the Spec's pattern: [ParseCertificates]
	// makes it from what is there.
	Certificates(url string) (*Certificates, error)
}

const (
	// MaxCertificates bounds the PEM that [ParseCertificates] takes, in bytes.
	MaxCertificates = 64 << 10
	// maxChain bounds how many certificates are in it.
	maxChain = 8
	// minRSA and maxRSA bound the size of a certificate's key, in bits.
	minRSA = 2048
	maxRSA = 8 * maxSignature
	// maxCertificateURL bounds the URL, in bytes.
	maxCertificateURL = 1024
)

// Certificates is a certificate with those that lead to a root. It is safe for concurrent use.
type Certificates struct {
	leaf          *x509.Certificate
	key           *rsa.PublicKey
	intermediates *x509.CertPool
	roots         *x509.CertPool

	mu       sync.Mutex
	from, to time.Time // when the chain is known to be valid
}

// ParseCertificates parses a chain in PEM, leaf first. It is trusted if it leads to one of the roots, nil meaning the system's; a
// root may be the leaf itself. Whether it does is checked at each verification.
func ParseCertificates(chain []byte, roots *x509.CertPool) (*Certificates, error) {
	if len(chain) > MaxCertificates {
		return nil, fmt.Errorf("certificate: more than %d bytes", MaxCertificates)
	}
	c := &Certificates{roots: roots, intermediates: x509.NewCertPool()}
	for n := 0; ; n++ {
		block, rest := pem.Decode(chain)
		if block == nil {
			break
		}
		chain = rest
		if block.Type != "CERTIFICATE" || n == maxChain {
			return nil, fmt.Errorf("certificate: allowed are at most %d blocks, all of type CERTIFICATE", maxChain)
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n+1, err)
		}
		if c.leaf == nil {
			c.leaf = parsed
		} else {
			c.intermediates.AddCert(parsed)
		}
	}
	if c.leaf == nil || len(bytes.TrimSpace(chain)) > 0 {
		return nil, errors.New("certificate: not PEM")
	}
	var ok bool
	if c.key, ok = c.leaf.PublicKey.(*rsa.PublicKey); !ok || c.key.N.BitLen() < minRSA || c.key.N.BitLen() > maxRSA {
		return nil, fmt.Errorf("certificate: allowed are RSA keys of %d to %d bits", minRSA, maxRSA)
	}
	return c, nil
}

// trusted reports whether the chain leads to a root at the time. That a chain is valid is remembered.
func (c *Certificates) trusted(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.to.IsZero() && !now.Before(c.from) && !now.After(c.to) {
		return true
	}
	chains, err := c.leaf.Verify(x509.VerifyOptions{Roots: c.roots, Intermediates: c.intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return false
	}
	c.from, c.to = c.leaf.NotBefore, c.leaf.NotAfter
	for _, parent := range chains[0] {
		if parent.NotBefore.After(c.from) {
			c.from = parent.NotBefore
		}
		if parent.NotAfter.Before(c.to) {
			c.to = parent.NotAfter
		}
	}
	return true
}

// named reports whether one of the leaf's names matches a pattern.
func (c *Certificates) named(patterns []*regexp.Regexp) bool {
	if len(patterns) == 0 {
		return true
	}
	names := c.leaf.DNSNames
	if len(names) == 0 {
		names = []string{c.leaf.Subject.CommonName}
	}
	for _, name := range names {
		for _, p := range patterns {
			if p.MatchString(name) {
				return true
			}
		}
	}
	return false
}

// certificate is a Certificate made ready.
type certificate struct {
	url     source
	pattern *regexp.Regexp
	names   []*regexp.Regexp
}

func (c *Compiled) certificate(from *Certificate) (*certificate, error) {
	out := new(certificate)
	var err error
	if out.url, err = c.source(from.URL); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(from.Pattern, "https://") {
		return nil, errors.New("pattern must begin with https:// and pin the host, else anybody's certificate would do")
	}
	if out.pattern, err = whole(from.Pattern); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	for _, name := range from.Names {
		p, err := whole(name)
		if err != nil {
			return nil, fmt.Errorf("name: %w", err)
		}
		out.names = append(out.names, p)
	}
	return out, nil
}

// whole compiles a pattern of whole texts.
func whole(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err // with unpaired brackets it might compile once it is wrapped
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// publicKey is the key of the certificate that d names.
func (cert *certificate) publicKey(c *Compiled, d *Delivery, now time.Time) (*rsa.PublicKey, error) {
	address := c.value(d, &cert.url)
	if address == "" {
		return nil, ErrContentMissing
	}
	if len(address) > maxCertificateURL || !cert.pattern.MatchString(address) || d.Certificates == nil {
		return nil, ErrCertificate
	}
	// Whatever the pattern lets through: one that is read in another way by whoever fetches it is not.
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Port() != "" || u.Fragment != "" || u.String() != address {
		return nil, ErrCertificate
	}
	chain, err := d.Certificates.Certificates(address)
	if err != nil || chain == nil || !chain.named(cert.names) || !chain.trusted(now) {
		return nil, ErrCertificate
	}
	return chain.key, nil
}
