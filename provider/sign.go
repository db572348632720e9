package provider

import (
	"crypto/ed25519"
	"crypto/hmac"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Sign sets the headers that the provider would, for tests and for sending samples: the signature and, where it is a header or
// part of one, the timestamp. All else that is signed must be in d already. The first scheme that the secret fits signs; an ed25519
// scheme takes the private key or its seed. The error never contains the secret.
func (c *Compiled) Sign(d *Delivery, secret string, now time.Time) error {
	if len(c.schemes) == 0 {
		return ErrNoScheme
	}
	var first error
	for _, s := range c.schemes {
		sign, err := c.signer(s, secret)
		if err == nil {
			return c.sign(d, s, sign, now)
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("signing as %s: %w", c.spec.ID, first)
}

type signer func(d *Delivery, timestamp string) ([]byte, error)

var errForeignSecret = errors.New("secret is not for this scheme")

func (c *Compiled) signer(s *scheme, secret string) (signer, error) {
	if strings.TrimSpace(secret) == "" {
		return nil, errEmptySecret
	}
	text, ok := secret, false
	if p := s.key.privatePrefix; p != "" {
		text, ok = strings.CutPrefix(secret, p)
	}
	if !ok {
		if s.key.privatePrefix != "" && s.key.prefixRequired {
			return nil, errForeignSecret
		}
		if text, ok = c.trimKeyPrefix(s, secret); !ok {
			return nil, errForeignSecret
		}
	}
	key, err := s.key.bytes(text)
	if err != nil {
		return nil, err
	}
	switch s.algorithm.kind {
	case kindToken:
		return func(*Delivery, string) ([]byte, error) { return key, nil }, nil
	case kindEd25519:
		switch len(key) {
		case ed25519.SeedSize:
			key = ed25519.NewKeyFromSeed(key)
		case ed25519.PrivateKeySize:
		default:
			return nil, fmt.Errorf("secret is not an ed25519 private key of %d or %d bytes", ed25519.SeedSize, ed25519.PrivateKeySize)
		}
		return func(d *Delivery, timestamp string) ([]byte, error) {
			message, err := c.message(d, s, timestamp)
			if err != nil {
				return nil, err
			}
			return ed25519.Sign(key, message), nil
		}, nil
	}
	return func(d *Delivery, timestamp string) ([]byte, error) {
		m := &mac{Hash: hmac.New(s.algorithm.hash, key)}
		err := c.sum(d, s, timestamp, m)
		return m.sum, err
	}, nil
}

func (c *Compiled) sign(d *Delivery, s *scheme, sign signer, now time.Time) error {
	if d.Header == nil {
		d.Header = make(http.Header)
	}
	timestamp := ""
	if t := s.timestamp; t != nil {
		switch t.From {
		case FromJSON:
			timestamp = c.values(d)[s.timeSlot]
		case FromHeader:
			timestamp = formatTimestamp(t.Format, now)
			d.Header[s.timeHeader] = []string{timestamp}
		default:
			timestamp = formatTimestamp(t.Format, now)
		}
	}
	signature, err := sign(d, timestamp)
	if err != nil {
		return fmt.Errorf("signing as %s: %w", c.spec.ID, err)
	}
	d.Header[s.header] = []string{s.headerText(signature, timestamp)}
	return nil
}

// headerText is the signature header's value.
func (s *scheme) headerText(signature []byte, timestamp string) string {
	if s.algorithm.kind == kindToken {
		return s.prefix + string(signature)
	}
	text := encode(s.encoding, signature)
	if s.names == nil {
		return s.prefix + text
	}
	text = s.names[0] + s.assign + text
	if s.timestamp != nil && s.timestamp.From == FromElement {
		text = s.timestamp.Name + s.assign + timestamp + s.separator + text
	}
	return text
}
