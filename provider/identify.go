package provider

// Identity is what a delivery says about its event.
type Identity struct {
	// Parts together name the event. None is empty. They are raw: the caller encodes them.
	Parts []string
	// Type is the event's type, Account the account it belongs to; both may be empty.
	Type, Account string
}

// Identify finds the event's identity: the primary parts, else the first fallback that is complete. Where there is none the error is
// [ErrMissingID], and Type and Account are set all the same.
func (c *Compiled) Identify(d *Delivery) (Identity, error) {
	id := Identity{Type: c.first(d, c.eventType), Account: c.first(d, c.account)}
	if id.Parts = c.parts(d, c.eventID); id.Parts != nil {
		return id, nil
	}
	for _, fallback := range c.fallbacks {
		if id.Parts = c.parts(d, fallback); id.Parts != nil {
			return id, nil
		}
	}
	return id, ErrMissingID
}

// parts returns nil if one is missing.
func (c *Compiled) parts(d *Delivery, parts []alternatives) []string {
	if len(parts) == 0 {
		return nil
	}
	out := make([]string, len(parts))
	for i, p := range parts {
		if out[i] = c.first(d, p); out[i] == "" {
			return nil
		}
	}
	return out
}

// first is the first alternative that is present, else empty.
func (c *Compiled) first(d *Delivery, a alternatives) string {
	for i := range a {
		if v := c.value(d, &a[i]); v != "" {
			return v
		}
	}
	return ""
}

// BodyHash is the identity of a body by its bytes, "sha256-" and their hex SHA-256, empty for an empty body. It is safe as an event's
// identity only where [Spec.BodyHashSafe] says so.
func (c *Compiled) BodyHash(d *Delivery) string { return c.bodyHash(d, nil) }
