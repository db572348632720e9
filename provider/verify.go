package provider

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// CheckHeaders refuses what headers alone can refuse, before a body is read: a signature header that is absent, repeated, empty
// or too long, an absent or repeated header that is signed with the body, and a mixture of header families. A provider
// without schemes passes. The error wraps [ErrSignature].
func (c *Compiled) CheckHeaders(h http.Header) error {
	if len(c.schemes) == 0 {
		return nil
	}
	_, err := c.lead(h)
	return err
}

// lead is the first scheme whose signature header is present, its headers checked.
func (c *Compiled) lead(h http.Header) (*scheme, error) {
	s := c.deciding(&Delivery{Header: h})
	if s == nil || len(h[s.header]) == 0 {
		return nil, ErrSignatureMissing
	}
	if err := s.check(h); err != nil {
		return nil, err
	}
	if c.mixed(h, s) {
		return nil, ErrFamiliesMixed
	}
	return s, nil
}

// Verify checks the signature over the raw body: any key may match any of the header's signatures. A signed timestamp may be up to
// tolerance before or after now, to the precision in which it is written; a negative tolerance accepts any age. Comparisons take
// constant time. The error wraps [ErrSignature] and contains nothing of the delivery or the keys.
func (c *Compiled) Verify(d *Delivery, keys []Key, now time.Time, tolerance time.Duration) error {
	if len(c.schemes) == 0 {
		return ErrNoScheme
	}
	lead, err := c.lead(d.Header)
	if err != nil {
		return err
	}
	result := ErrNoKey
	for i, s := range c.schemes {
		if s.header != lead.header {
			continue
		}
		err := c.verify(d, i, keys, now, tolerance)
		if err == nil {
			return nil
		}
		// Several schemes share the header: what the one that got furthest says is the most telling.
		if result == ErrNoKey || result == ErrSignatureMalformed && err != ErrNoKey {
			result = err
		}
	}
	return result
}

// verify checks a delivery by one scheme.
func (c *Compiled) verify(d *Delivery, index int, keys []Key, now time.Time, tolerance time.Duration) error {
	s := c.schemes[index]
	if !c.anyKey(keys, index) {
		return ErrNoKey
	}
	if err := s.check(d.Header); err != nil {
		return err
	}
	value := d.Header[s.header][0]
	if s.algorithm.kind == kindToken {
		return c.verifyToken(s, value, keys, index)
	}
	timestamp, err := c.timestamp(d, s, value)
	if err != nil {
		return err
	}
	if err := s.checkAge(timestamp, now, tolerance); err != nil {
		return err
	}
	// Whatever can't be decoded is refused before the body is hashed.
	if first := s.signatures(value); first.next() == nil {
		return ErrSignatureMalformed
	}
	if s.algorithm.kind == kindEd25519 {
		return c.verifyEd25519(d, s, value, timestamp, keys, index)
	}
	for i := range keys {
		if k := keys[i].scheme(c, index); k != nil {
			if ok, err := c.verifyHMAC(d, s, value, timestamp, k); ok || err != nil {
				return err
			}
		}
	}
	return ErrSignatureMismatch
}

func (k *Key) scheme(c *Compiled, index int) *key {
	if k.by != c {
		return nil
	}
	return k.prepared[index]
}

func (c *Compiled) anyKey(keys []Key, index int) bool {
	for i := range keys {
		if keys[i].scheme(c, index) != nil {
			return true
		}
	}
	return false
}

func (c *Compiled) verifyHMAC(d *Delivery, s *scheme, value, timestamp string, k *key) (bool, error) {
	m := k.macs.Get().(*mac)
	defer k.macs.Put(m)
	if err := c.sum(d, s, timestamp, m); err != nil {
		return false, err
	}
	for all := s.signatures(value); ; {
		signature := all.next()
		if signature == nil {
			return false, nil
		}
		if hmac.Equal(signature, m.sum) {
			return true, nil
		}
	}
}

// sum puts the MAC of the signed content into m.sum.
func (c *Compiled) sum(d *Delivery, s *scheme, timestamp string, m *mac) error {
	m.Reset()
	if err := c.each(d, s, timestamp, m.writeString, func(b []byte) { m.Write(b) }); err != nil {
		return err
	}
	m.sum = m.Sum(m.sum[:0])
	return nil
}

func (c *Compiled) verifyEd25519(d *Delivery, s *scheme, value, timestamp string, keys []Key, index int) error {
	message, err := c.message(d, s, timestamp)
	if err != nil {
		return err
	}
	for all := s.signatures(value); ; {
		signature := all.next()
		if signature == nil {
			return ErrSignatureMismatch
		}
		for i := range keys {
			if k := keys[i].scheme(c, index); k != nil && ed25519.Verify(k.public, message, signature) {
				return nil
			}
		}
	}
}

// message is the signed content in one piece, for algorithms that need it so. It is the body itself where nothing else is signed.
func (c *Compiled) message(d *Delivery, s *scheme, timestamp string) ([]byte, error) {
	if len(s.content) == 1 && s.content[0].kind == segmentBody {
		return d.Body, nil
	}
	out := make([]byte, 0, len(d.Body)+256)
	err := c.each(d, s, timestamp,
		func(t string) { out = append(out, t...) },
		func(b []byte) { out = append(out, b...) })
	return out, err
}

func (c *Compiled) verifyToken(s *scheme, value string, keys []Key, index int) error {
	text, ok := strings.CutPrefix(value, s.prefix)
	if !ok || text == "" {
		return ErrSignatureMalformed
	}
	// Hashes have one length, so that comparing them doesn't tell the token's.
	got := sha256.Sum256([]byte(text))
	match := 0
	for i := range keys {
		if k := keys[i].scheme(c, index); k != nil {
			match |= subtle.ConstantTimeCompare(got[:], k.token[:])
		}
	}
	if match == 0 {
		return ErrSignatureMismatch
	}
	return nil
}
