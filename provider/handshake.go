package provider

import (
	"net/http"
	"slices"
	"time"
)

// Handshake reports whether d has the shape of one of the provider's handshakes, its name, and whether the provider signs it: such a
// one must be verified before it is passed on.
func (c *Compiled) Handshake(d *Delivery) (name string, signed, ok bool) {
	if h := c.handshakeOf(d); h != nil {
		return h.Name, h.Signed, true
	}
	return "", false, false
}

func (c *Compiled) handshakeOf(d *Delivery) *handshake {
	for i := range c.handshakes {
		if h := &c.handshakes[i]; c.isHandshake(d, h) {
			return h
		}
	}
	return nil
}

func (c *Compiled) isSignedHandshake(d *Delivery) bool {
	h := c.handshakeOf(d)
	return h != nil && h.Signed
}

func (c *Compiled) isHandshake(d *Delivery, h *handshake) bool {
	if d.Method != h.Method || h.EmptyBody && len(d.Body) > 0 || h.body != nil && !h.body.Match(d.Body) {
		return false
	}
	if h.EmptyBatch {
		if r, err := c.batchOf(d, c.batch); err != nil || len(r.elements) > 0 {
			return false
		}
	}
	return c.holdAll(d, h.when)
}

// handshakesDelivered reports whether a signed handshake may come by a method of deliveries.
func (c *Compiled) handshakesDelivered() bool {
	return slices.ContainsFunc(c.handshakes, func(h handshake) bool { return h.Signed && c.IsDelivery(h.Method) })
}

// maybeHandshake reports whether a request with d's headers can be an unsigned handshake.
func (c *Compiled) maybeHandshake(d *Delivery) bool {
	for i := range c.handshakes {
		h := &c.handshakes[i]
		if holds, _ := c.holdInHead(d, h.when); holds && !h.Signed && c.IsDelivery(h.Method) {
			return true
		}
	}
	return false
}

// AnswerHandshake returns the answer to a handshake; false if d is none, if its answer takes more than a secret, or if it is
// signed with none of the keys. The timestamp's age is left to [Compiled.Verify].
func (c *Compiled) AnswerHandshake(d *Delivery, keys []Key) (status int, header http.Header, body []byte, ok bool) {
	h := c.handshakeOf(d)
	if h == nil || h.answer == nil {
		return 0, nil, nil, false
	}
	// The answer to a signed one is made with the key that signed it.
	if h.Signed {
		i := slices.IndexFunc(keys, func(k Key) bool { return c.Verify(d, []Key{k}, time.Time{}, -1) == nil })
		if i < 0 {
			return 0, nil, nil, false
		}
		keys = keys[i : i+1]
	}
	return c.write(d, h.answer, keys)
}
