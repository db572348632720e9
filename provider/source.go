package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Source names a place in a delivery. Its JSON form is, for instance, {"from": "header", "name": "X-Acme-Delivery"},
// {"from": "json", "name": "$.event.id"} or {"from": "body", "except": ["sent_at"]}.
type Source struct {
	// From is the kind of place:
	//   - header: the request header Name. Several lines of it count only if they are equal.
	//   - json: the JSON path Name in the body ($.a.b, a.b, a[0].b, a.0.b, a['b.c']). Of duplicate members the last wins; a
	//     number gives its literal; null, objects and arrays, "" and a body that is not JSON are missing.
	//   - form: the field Name of an application/x-www-form-urlencoded body, the last one.
	//   - query: the query parameter Name, the last one.
	//   - body: "sha256-" and the hex SHA-256 of the raw body; with Except, of its JSON tokens without those at the
	//     paths in Except, whatever the white space.
	//   - signed_id: the ID header of the signature scheme that decides about this delivery.
	//   - method: the HTTP method; media_type: the Content-Type in lower case, without parameters.
	From string `json:"from"`
	// Name is the header's, field's or parameter's name, or the JSON path.
	Name string `json:"name,omitempty"`
	// Except are JSON paths that change from one delivery of an event to the next. Only for body.
	Except []string `json:"except,omitempty"`
}

// The values of [Source.From].
const (
	FromHeader   = "header"
	FromJSON     = "json"
	FromForm     = "form"
	FromQuery    = "query"
	FromBody     = "body"
	FromSignedID = "signed_id"

	FromMethod    = "method"
	FromMediaType = "media_type"
)

const allSources = "header, json, form, query, body, signed_id"

// Part is a part of an event ID: alternatives, of which the first that is present and not empty counts.
type Part []Source

// FromHeaders is a Part of the headers, in order of preference.
func FromHeaders(names ...string) Part { return part(FromHeader, names) }

// FromJSONPaths is a Part of the JSON paths, in order of preference.
func FromJSONPaths(paths ...string) Part { return part(FromJSON, paths) }

func part(from string, names []string) Part {
	p := make(Part, len(names))
	for i, n := range names {
		p[i] = Source{From: from, Name: n}
	}
	return p
}

// source is a Source made ready.
type source struct {
	from   string
	name   string // canonical for a header
	slot   int    // of a JSON path
	except *paths
}

func (c *Compiled) source(s Source) (source, error) {
	out := source{from: s.From, name: s.Name}
	if s.From != FromBody && len(s.Except) > 0 {
		return out, fmt.Errorf("source %s: except is allowed for body only", s.From)
	}
	switch s.From {
	case FromHeader:
		name, err := headerName(s.Name)
		if err != nil {
			return out, fmt.Errorf("source header: %w", err)
		}
		out.name = name
	case FromJSON:
		slot, err := c.paths.add(s.Name)
		if err != nil {
			return out, fmt.Errorf("source json: %w", err)
		}
		out.slot = slot
	case FromForm, FromQuery:
		if s.Name == "" {
			return out, fmt.Errorf("source %s: name is empty", s.From)
		}
	case FromBody:
		if s.Name != "" {
			return out, fmt.Errorf("source body: takes no name, got %q", s.Name)
		}
		for _, path := range s.Except {
			if out.except == nil {
				out.except = newPaths()
			}
			if _, err := out.except.add(path); err != nil {
				return out, fmt.Errorf("source body except: %w", err)
			}
		}
	case FromMethod, FromMediaType:
		if s.Name != "" {
			return out, fmt.Errorf("source %s: takes no name, got %q", s.From, s.Name)
		}
	case FromSignedID:
		// A catalogue's entry may have lost its schemes to the user's: it then has other sources.
		if c.spec.Own && !slices.ContainsFunc(c.spec.Schemes, func(s Scheme) bool { return s.IDHeader != "" }) {
			return out, fmt.Errorf("source signed_id: no signature scheme has an id_header")
		}
	default:
		return out, fmt.Errorf("source %q is not known, allowed are %s", s.From, allSources)
	}
	return out, nil
}

func newPaths() *paths { return &paths{root: node{slot: -1}} }

// headerName checks and canonicalises a header's name.
func headerName(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("header name is empty")
	}
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return "", fmt.Errorf("%q is not a header name", name)
		}
	}
	return http.CanonicalHeaderKey(name), nil
}

// value returns the source's value in d, empty if it is missing.
func (c *Compiled) value(d *Delivery, s *source) string {
	switch s.from {
	case FromHeader:
		return headerValue(d.Header, s.name)
	case FromJSON:
		return c.values(d)[s.slot]
	case FromForm:
		return lastField(c.form(d), s.name)
	case FromQuery:
		return lastField(d.Query, s.name)
	case FromBody:
		return c.bodyHash(d, s.except)
	case FromSignedID:
		if sc, _, _ := c.deciding(d); sc != nil {
			return headerValue(d.Header, sc.idHeader)
		}
	case FromMethod:
		return d.Method
	case FromMediaType:
		return mediaType(d.Header)
	}
	return ""
}

// mediaType is the Content-Type in lower case, without parameters; empty if there is none or a broken one.
func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(headerValue(h, "Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// form is the raw body if it is a form, else empty.
func (c *Compiled) form(d *Delivery) string {
	if mediaType(d.Header) != "application/x-www-form-urlencoded" {
		return ""
	}
	r := c.reading(d)
	if !r.formDone {
		r.formDone = true
		if body, ok := c.plain(d); ok {
			r.form = string(body)
		}
	}
	return r.form
}

// values are the values of all JSON paths of the provider, read in one pass.
func (c *Compiled) values(d *Delivery) []string {
	r := c.reading(d)
	if !r.valuesDone {
		r.valuesDone = true
		if body, ok := c.plain(d); ok {
			r.values = c.paths.lookup(body)
		} else {
			r.values = make([]string, c.paths.size)
		}
	}
	return r.values
}

func (c *Compiled) bodyHash(d *Delivery, except *paths) string {
	if len(d.Body) == 0 {
		return ""
	}
	h := sha256.New()
	if except == nil {
		h.Write(d.Body)
	} else if body, ok := c.plain(d); !ok || !except.hashExcept(h, body) {
		return ""
	}
	return "sha256-" + hex.EncodeToString(h.Sum(nil))
}

// headerValue is the header's value; lines that differ are ambiguous and count as missing.
func headerValue(h http.Header, name string) string {
	lines := h[name]
	if len(lines) == 0 {
		return ""
	}
	for _, l := range lines[1:] {
		if l != lines[0] {
			return ""
		}
	}
	return strings.TrimSpace(lines[0])
}

// lastField is the last value of a field in a form or query, which is the one that PHP, for one, keeps. Pairs that are not
// properly encoded are left out.
func lastField(form, name string) string {
	for form != "" {
		pair := form
		if i := strings.LastIndexByte(form, '&'); i >= 0 {
			form, pair = form[:i], form[i+1:]
		} else {
			form = ""
		}
		key, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(key, "%+") {
			var err error
			if key, err = url.QueryUnescape(key); err != nil {
				continue
			}
		}
		if key != name {
			continue
		}
		if v, err := url.QueryUnescape(value); err == nil {
			return v
		}
	}
	return ""
}
