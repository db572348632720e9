package provider

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Sign signs d as the provider would, for tests and for sending samples: it sets the signature and, where it is a header or part of
// one, the timestamp. A signature in the body replaces the one that is there; a body hash in the query is added to it and to the
// URL; a signed ID that is missing is the one that [Compiled.Identify] finds. All else that is signed must be in d already. The first scheme that the secret fits and whose conditions d meets signs.
//
// A scheme with public keys takes the private one: for ed25519 as KeyEncoding says, or its seed; for the others in PEM, PKCS #8 in
// base64 or, for a JWT, as a JWK. In front of the PEM for an rsa scheme stands the secret that it signs or is pinned to. The
// error never contains the secret.
func (c *Compiled) Sign(d *Delivery, secret string, now time.Time) error {
	if len(c.schemes) == 0 {
		return ErrNoScheme
	}
	if d.Header == nil {
		d.Header = make(http.Header)
	}
	var first error
	for _, s := range c.schemes {
		err := errOtherDelivery
		if c.applies(s, d) {
			var sign signer
			if sign, err = c.signer(s, secret); err == nil {
				if err = c.sign(d, s, sign, secret, now); err == nil {
					return nil
				}
				// A body without what the scheme signs is another scheme's.
				if s.signature == nil {
					return fmt.Errorf("signing as %s: %w", c.spec.ID, err)
				}
			}
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("signing as %s: %w", c.spec.ID, first)
}

// signer makes a signature, or the whole text of one.
type signer func(ct *content, now time.Time) ([]byte, error)

var (
	errForeignSecret = errors.New("secret is not for this scheme")
	errOtherDelivery = errors.New("the delivery doesn't meet the scheme's conditions")
	errNoPlace       = errors.New("the body has no place for the signature")
)

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
	_, text = s.key.cutName(text)
	switch s.algorithm.kind {
	case kindECDSA:
		return signECDSA(text)
	case kindRSA:
		return s.signRSA(text)
	case kindJWT:
		return s.signJWT(text)
	case kindHash:
		return signMAC(func() *mac { return &mac{Hash: s.algorithm.hash()} }, text), nil
	}
	key, err := s.key.bytes(text)
	if err != nil {
		return nil, err
	}
	switch s.algorithm.kind {
	case kindToken:
		return func(*content, time.Time) ([]byte, error) { return key, nil }, nil
	case kindBasic:
		if !strings.Contains(text, ":") {
			return nil, errBasicSecret
		}
		return func(*content, time.Time) ([]byte, error) {
			return []byte("Basic " + base64.StdEncoding.EncodeToString(key)), nil
		}, nil
	case kindEd25519:
		return signEd25519(key)
	}
	return signMAC(func() *mac { return &mac{Hash: hmac.New(s.algorithm.hash, key)} }, text), nil
}

func signMAC(newMAC func() *mac, text string) signer {
	return func(ct *content, _ time.Time) ([]byte, error) {
		ct.secret = text
		m := newMAC()
		err := ct.sum(m)
		return m.sum, err
	}
}

func signEd25519(key ed25519.PrivateKey) (signer, error) {
	switch len(key) {
	case ed25519.SeedSize:
		key = ed25519.NewKeyFromSeed(key)
	case ed25519.PrivateKeySize:
	default:
		return nil, fmt.Errorf("secret is not an ed25519 private key of %d or %d bytes", ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	return func(ct *content, _ time.Time) ([]byte, error) {
		message, err := ct.message()
		if err != nil {
			return nil, err
		}
		return ed25519.Sign(key, message), nil
	}, nil
}

func signECDSA(secret string) (signer, error) {
	key, err := ecdsaPrivate(secret)
	if err != nil {
		return nil, err
	}
	return func(ct *content, _ time.Time) ([]byte, error) {
		message, err := ct.message()
		if err != nil {
			return nil, err
		}
		return ecdsa.SignASN1(rand.Reader, key, ct.s.algorithm.digestOf(message))
	}, nil
}

func (s *scheme) signRSA(secret string) (signer, error) {
	key, text, err := rsaPrivate(secret)
	if err != nil {
		return nil, err
	}
	return func(ct *content, _ time.Time) ([]byte, error) {
		ct.secret = text
		message, err := ct.message()
		if err != nil {
			return nil, err
		}
		return rsa.SignPKCS1v15(rand.Reader, key, s.algorithm.digest, s.algorithm.digestOf(message))
	}, nil
}

func (c *Compiled) sign(d *Delivery, s *scheme, sign signer, secret string, now time.Time) error {
	if s.bodyHash != nil && s.claims == nil {
		setQuery(d, s.bodyHash.Name, bodySHA256(d.Body))
	}
	if s.idHeader != "" && len(d.Header[s.idHeader]) == 0 {
		// The ID stands elsewhere: in a header that is there whatever the scheme, say.
		if id, err := c.Identify(d); err == nil {
			d.Header[s.idHeader] = []string{id.Parts[len(id.Parts)-1]}
		}
	}
	timestamp := ""
	if t := s.timestamp; t != nil {
		switch t.From {
		case FromJSON, FromForm:
			var err error
			if timestamp, err = c.timestamp(d, s, ""); err != nil {
				return err
			}
		case FromHeader:
			timestamp = formatTimestamp(t.Format, now)
			d.Header[s.timeHeader] = []string{timestamp}
		default:
			timestamp = formatTimestamp(t.Format, now)
		}
	}
	if s.each != nil {
		return c.signEach(d, s, sign, now)
	}
	ct := content{c: c, by: c, d: d, s: s, timestamp: timestamp, url: d.URL}
	signature, err := sign(&ct, now)
	if err != nil {
		return err
	}
	name, _ := s.key.cutName(secret)
	text := s.headerText(signature, timestamp, name)
	if s.signature == nil {
		d.Header[s.headers[0]] = []string{text}
		return nil
	}
	switch s.signature.from {
	case FromQuery:
		setQuery(d, s.signature.name, text)
		return nil
	case FromForm:
		d.Body = []byte(setField(string(d.Body), s.signature.name, text))
		return nil
	}
	body, ok := setJSON(c.paths, s.signature.slot, d.Body, text)
	if !ok {
		return errNoPlace
	}
	d.Body = body
	return nil
}

// signEach signs the elements, from the last to the first, so that those before stay where they are.
func (c *Compiled) signEach(d *Delivery, s *scheme, sign signer, now time.Time) error {
	r, err := c.batchOf(d, s.each)
	if err != nil {
		return err
	}
	body := append([]byte(nil), d.Body...)
	for i := len(r.elements) - 1; i >= 0; i-- {
		element := r.delivery(d, i)
		signature, err := sign(&content{c: c, by: s.each.element, d: &element, s: s}, now)
		if err != nil {
			return err
		}
		signed, ok := setJSON(s.each.element.paths, s.signature.slot, element.Body, s.headerText(signature, "", ""))
		if !ok {
			return errNoPlace
		}
		at := r.elements[i]
		body = append(body[:at.start:at.start], append(signed, body[at.end:]...)...)
	}
	d.Body = body
	return nil
}

// headerText is the signature header's value.
func (s *scheme) headerText(signature []byte, timestamp, keyName string) string {
	if s.algorithm.isToken() || s.algorithm.kind == kindJWT {
		return s.prefix + string(signature)
	}
	text := encode(s.encoding, signature)
	if s.names == nil {
		return s.prefix + text
	}
	timed := s.timestamp != nil && s.timestamp.From == FromElement
	if s.assign == "" {
		if timed {
			return timestamp + s.separator + text
		}
		return text
	}
	name := s.names[0]
	if name == "*" && keyName != "" {
		name = keyName
	} else if name == "*" {
		name = "key"
	}
	text = name + s.assign + text
	if timed {
		text = s.timestamp.Name + s.assign + timestamp + s.separator + text
	}
	return text
}
