package provider

import (
	"net/http"
	"time"
)

// CheckHeaders refuses what headers alone can refuse, before a body is read: a signature header that is absent, repeated, empty
// or too long, an absent or repeated header that is signed with the body, and a mixture of header families. A provider
// without schemes passes, and so does what only the body or the method can tell: a signature that may be in the body, or an
// unsigned handshake that the provider may send. The error wraps [ErrSignature].
func (c *Compiled) CheckHeaders(h http.Header) error {
	d := &Delivery{Header: h}
	known := false
	for _, s := range c.schemes {
		switch {
		case s.onlyHandshakes && !c.handshakesDelivered():
			continue
		case s.signature != nil:
			return nil
		case !s.sent(h):
			continue
		}
		if s.onlyHandshakes {
			return nil // only the body tells
		}
		known = true
		holds, sure := c.holdInHead(d, s.when)
		if !sure {
			return nil
		}
		if holds {
			return c.checkLead(h, s)
		}
	}
	switch {
	case len(c.schemes) == 0, c.maybeHandshake(d):
		return nil
	case known:
		return ErrSchemeUnknown
	}
	return ErrSignatureMissing
}

// lead is the deciding scheme, its headers checked.
func (c *Compiled) lead(d *Delivery) (*scheme, error) {
	s, signed, known := c.deciding(d)
	switch {
	case signed:
		return s, c.checkLead(d.Header, s)
	case known:
		return nil, ErrSchemeUnknown
	}
	return nil, ErrSignatureMissing
}

func (c *Compiled) checkLead(h http.Header, s *scheme) error {
	if err := s.check(h); err != nil {
		return err
	}
	if c.mixed(h, s) {
		return ErrFamiliesMixed
	}
	return nil
}

// Verify checks the signature over the raw body: any key may match any of the header's signatures. A signed timestamp may be up to
// tolerance before or after now, to the precision in which it is written; a negative tolerance accepts any age. Comparisons take
// constant time. The error wraps [ErrSignature] and contains nothing of the delivery or the keys.
func (c *Compiled) Verify(d *Delivery, keys []Key, now time.Time, tolerance time.Duration) error {
	if len(c.schemes) == 0 {
		return ErrNoScheme
	}
	lead, err := c.lead(d)
	if err != nil {
		return err
	}
	result := ErrNoKey
	for i, s := range c.schemes {
		if s.place != lead.place || s != lead && !c.applies(s, d) {
			continue
		}
		err := c.verify(d, i, keys, now, tolerance)
		if err == nil {
			return nil
		}
		// Several schemes share the place: what the one that got furthest says is the most telling.
		if result == ErrNoKey || result == ErrSignatureMalformed && err != ErrNoKey {
			result = err
		}
	}
	return result
}

// verify checks a delivery by one scheme.
func (c *Compiled) verify(d *Delivery, index int, keys []Key, now time.Time, tolerance time.Duration) error {
	s := c.schemes[index]
	var few [4]*key
	fit := few[:0]
	for i := range keys {
		if k := keys[i].scheme(c, index); k != nil {
			fit = append(fit, k)
		}
	}
	if len(fit) == 0 && (s.claims == nil || d.JWKs == nil) {
		return ErrNoKey
	}
	if err := s.check(d.Header); err != nil {
		return err
	}
	if s.emptyBody && len(d.Body) > 0 {
		return ErrBodyHash
	}
	if s.pin != nil {
		if fit = pinned(fit, c.value(d, s.pin)); len(fit) == 0 {
			return ErrForeign
		}
	}
	switch s.algorithm.kind {
	case kindToken, kindBasic:
		return s.verifyToken(s.text(c, d, 0), fit)
	case kindJWT:
		return c.verifyJWT(d, s, s.text(c, d, 0), fit, now, tolerance)
	}
	if s.bodyHash != nil && !hashMatches(lastField(d.Query, s.bodyHash.Name), d.Body) {
		return ErrBodyHash
	}
	if s.each == nil {
		ct := content{c: c, by: c, d: d, s: s}
		return ct.verify(fit, now, tolerance)
	}
	r, err := c.batchOf(d, s.each)
	if err != nil {
		return ErrSignatureMissing
	}
	for i := range r.elements {
		element := r.delivery(d, i)
		ct := content{c: c, by: s.each.element, d: &element, s: s}
		if err := ct.verify(fit, now, tolerance); err != nil {
			return err
		}
	}
	return nil
}
