package provider

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Compiled is a Spec made ready by [Compile]. It is safe for concurrent use.
type Compiled struct {
	spec       Spec
	methods    []string
	schemes    []*scheme
	eventID    []alternatives
	fallbacks  [][]alternatives
	eventType  alternatives
	account    alternatives
	batch      *batch
	handshakes []handshake
	paths      *paths
}

// alternatives is a Part made ready.
type alternatives []source

type handshake struct {
	Handshake
	body   *regexp.Regexp
	when   []condition
	answer *answer
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Compile checks the whole Spec and makes it ready. An error names the field and what is allowed.
func Compile(s Spec) (*Compiled, error) {
	c := &Compiled{spec: s, paths: newPaths()}
	if err := c.compile(); err != nil {
		return nil, fmt.Errorf("provider %q: %w", s.ID, err)
	}
	return c, nil
}

func (c *Compiled) compile() error {
	s := &c.spec
	if !idPattern.MatchString(s.ID) {
		return errors.New("id: allowed are 1 to 63 lower case letters, digits and dashes, a letter or digit first")
	}
	if err := c.setMethods(); err != nil {
		return err
	}
	switch {
	case s.TTL < 0, s.Tolerance < 0, s.ResponseTimeout < 0, s.MaxBody < 0, s.Retry.Window < 0:
		return errors.New("ttl, tolerance, response timeout, max body and retry window must not be negative")
	case s.InFlightStatus != 0 && (s.InFlightStatus < 300 || s.InFlightStatus > 599):
		return fmt.Errorf("in-flight status %d: allowed are 300 to 599", s.InFlightStatus)
	case s.Own && len(s.EventID) == 0:
		return errors.New("id: an own provider needs at least one, from " + allSources)
	}
	for i := range s.Schemes {
		scheme, err := c.scheme(s.Schemes[i])
		if err != nil {
			if len(s.Schemes) > 1 {
				return fmt.Errorf("signature %d: %w", i+1, err)
			}
			return fmt.Errorf("signature: %w", err)
		}
		c.schemes = append(c.schemes, scheme)
	}
	if err := c.setSources(); err != nil {
		return err
	}
	for _, scheme := range c.schemes {
		if scheme.content.has(segmentID) && scheme.idHeader == "" && len(c.eventID) == 0 {
			return errors.New("signature: content {id}: needs an id_header or an event id")
		}
	}
	if s.Batch != nil {
		var err error
		if c.batch, err = newBatch(s.Batch); err != nil {
			return fmt.Errorf("batch: %w", err)
		}
	}
	for i := range s.Handshakes {
		h, err := c.handshake(s.Handshakes[i])
		if err != nil {
			return fmt.Errorf("handshake %d: %w", i+1, err)
		}
		c.handshakes = append(c.handshakes, h)
	}
	return nil
}

func (c *Compiled) setMethods() error {
	c.methods = slices.Clone(c.spec.Methods)
	if len(c.methods) == 0 {
		c.methods = []string{"POST"}
	}
	for _, m := range c.methods {
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, m) {
			return fmt.Errorf("method %q: allowed are GET, HEAD, POST, PUT, PATCH, DELETE", m)
		}
	}
	return nil
}

func (c *Compiled) setSources() (err error) {
	s := &c.spec
	if c.eventID, err = c.identity("id", s.EventID); err != nil {
		return err
	}
	for i, fallback := range s.Fallbacks {
		parts, err := c.identity(fmt.Sprintf("fallback %d", i+1), fallback)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return fmt.Errorf("fallback %d: has no parts", i+1)
		}
		c.fallbacks = append(c.fallbacks, parts)
	}
	if c.eventType, err = c.alternatives(s.EventType); err != nil {
		return fmt.Errorf("event type: %w", err)
	}
	if c.account, err = c.alternatives(s.Account); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	return nil
}

func (c *Compiled) identity(field string, parts []Part) ([]alternatives, error) {
	out := make([]alternatives, len(parts))
	for i, p := range parts {
		var err error
		if out[i], err = c.alternatives(p); err == nil && len(p) == 0 {
			err = errors.New("has no source")
		}
		if err != nil {
			return nil, fmt.Errorf("%s, part %d: %w", field, i+1, err)
		}
	}
	return out, nil
}

func (c *Compiled) alternatives(p Part) (alternatives, error) {
	out := make(alternatives, len(p))
	for i := range p {
		if p[i].From == FromMethod || p[i].From == FromMediaType {
			return nil, fmt.Errorf("source %s: is for conditions, allowed are %s", p[i].From, allSources)
		}
		var err error
		if out[i], err = c.source(p[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Compiled) handshake(h Handshake) (handshake, error) {
	out := handshake{Handshake: h}
	switch {
	case h.Name == "":
		return out, errors.New("name is empty")
	case h.EmptyBody && h.Body != "":
		return out, errors.New("empty body and a body pattern exclude each other")
	case !h.Signed && !h.EmptyBody && h.Body == "":
		return out, errors.New("an unsigned one must describe its whole body")
	}
	if out.Method == "" {
		out.Method = "POST"
	}
	var err error
	if h.Body != "" {
		if out.body, err = whole(h.Body); err != nil {
			return out, fmt.Errorf("body: %w", err)
		}
	}
	if h.EmptyBatch && c.batch == nil {
		return out, errors.New("empty batch: the provider has no batches")
	}
	if out.when, err = c.conditions(h.When); err != nil {
		return out, err
	}
	if out.answer, err = c.answer(h); err != nil {
		return out, fmt.Errorf("answer: %w", err)
	}
	return out, nil
}

// Spec returns what c was compiled from. Its slices must not be changed.
func (c *Compiled) Spec() Spec { return c.spec }

// IsDelivery reports whether requests with the method are deliveries.
func (c *Compiled) IsDelivery(method string) bool { return slices.Contains(c.methods, method) }

// DefaultTolerance returns the provider's tolerance, 5 minutes where it names none, and whether any of its schemes signs a
// timestamp. Without timestamps there is no tolerance.
func (c *Compiled) DefaultTolerance() (d time.Duration, timestamped bool) {
	for _, s := range c.schemes {
		if s.timestamp != nil {
			if c.spec.Tolerance > 0 {
				return c.spec.Tolerance, true
			}
			return DefaultTolerance, true
		}
	}
	return 0, false
}
