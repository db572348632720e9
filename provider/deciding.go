package provider

import (
	"net/http"
	"slices"
)

// sent reports whether a header of the scheme's signature is in h.
func (s *scheme) sent(h http.Header) bool {
	for _, name := range s.headers {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// present reports whether the scheme's signature is in d, that of the first element where each has its own.
func (c *Compiled) present(s *scheme, d *Delivery) bool {
	if s.signature == nil {
		return s.sent(d.Header)
	}
	if s.each == nil {
		return c.value(d, s.signature) != ""
	}
	r, err := c.batchOf(d, s.each)
	if err != nil || len(r.elements) == 0 {
		return false
	}
	first := r.delivery(d, 0)
	return s.each.element.value(&first, s.signature) != ""
}

// applies reports whether d meets the scheme's conditions.
func (c *Compiled) applies(s *scheme, d *Delivery) bool {
	return c.holdAll(d, s.when) && (!s.onlyHandshakes || c.isSignedHandshake(d))
}

// deciding is the first scheme whose signature is present and whose conditions hold; without any (signature off) the first
// whose ID header is present. Signed reports which of the two it is, and known whether there is any signature.
func (c *Compiled) deciding(d *Delivery) (s *scheme, signed, known bool) {
	for _, s := range c.schemes {
		if c.present(s, d) {
			if c.applies(s, d) {
				return s, true, true
			}
			known = known || !s.onlyHandshakes
		}
	}
	for _, s := range c.schemes {
		if s.idHeader != "" && len(d.Header[s.idHeader]) > 0 {
			return s, false, known
		}
	}
	return nil, false, known
}

// check refuses what can be refused without the body.
func (s *scheme) check(h http.Header) error {
	for _, name := range s.headers {
		lines := h[name]
		switch {
		case len(lines) == 0:
		case len(lines) > 1:
			return ErrSignatureRepeated
		case lines[0] == "" || len(lines[0]) > maxSignatureHeader:
			return ErrSignatureMalformed
		}
	}
	for _, name := range s.signed {
		lines := h[name]
		switch {
		case len(lines) > 1:
			return ErrSignatureRepeated
		case len(lines) == 1 && lines[0] != "":
		case name == s.timeHeader:
			return ErrTimestampMissing
		default:
			return ErrContentMissing
		}
	}
	return nil
}

// mixed reports whether h has headers of another family without that family's signature. Whoever reads those would read
// something unsigned.
func (c *Compiled) mixed(h http.Header, s *scheme) bool {
	for _, other := range c.schemes {
		if other.sent(h) {
			continue
		}
		for _, name := range other.signed {
			if len(h[name]) > 0 && !slices.Contains(s.headers, name) && !slices.Contains(s.signed, name) {
				return true
			}
		}
	}
	return false
}
