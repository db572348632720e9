package provider

import (
	"slices"
	"strconv"
	"strings"
)

// texts is how many texts may hold signatures.
func (s *scheme) texts() int { return max(1, len(s.headers)) }

// text is one of them, empty if it is absent. The delivery has been checked.
func (s *scheme) text(by *Compiled, d *Delivery, i int) string {
	if s.signature != nil {
		if v := by.value(d, s.signature); len(v) <= maxSignatureHeader {
			return v
		}
		return ""
	}
	if lines := d.Header[s.headers[i]]; len(lines) == 1 {
		return lines[0]
	}
	return ""
}

// isSignature reports whether a list's element with the name is a signature.
func (s *scheme) isSignature(name string) bool {
	return slices.Contains(s.names, name) ||
		s.names[0] == "*" && (s.timestamp == nil || s.timestamp.From != FromElement || s.timestamp.Name != name)
}

// elements walks through a list header.
type elements struct {
	rest, separator, assign string
	n                       int
	last                    bool
}

func (s *scheme) elements(value string) elements {
	return elements{rest: value, separator: s.separator, assign: s.assign}
}

// next returns the next element with a name.
func (e *elements) next() (name, value string, ok bool) {
	for e.n < maxElements && !e.last {
		e.n++
		element, rest, more := strings.Cut(e.rest, e.separator)
		e.rest, e.last = rest, !more
		element = strings.TrimSpace(element)
		if e.assign == "" {
			return strconv.Itoa(e.n), element, true
		}
		if name, value, ok = strings.Cut(element, e.assign); ok {
			return name, value, true
		}
	}
	return "", "", false
}

// signatures walks through the decodable signatures of a text, as many as the algorithm allows.
type signatures struct {
	of       *scheme
	value    string // without a list
	elements elements
	left     int
	buf      [maxFixed]byte
}

func (s *scheme) signatures(value string) signatures {
	return signatures{of: s, value: value, elements: s.elements(value), left: s.algorithm.tries}
}

// next returns the next signature, valid until the following call; nil after the last.
func (w *signatures) next() []byte {
	s := w.of
	if s.names == nil {
		text, ok := strings.CutPrefix(w.value, s.prefix)
		if w.left == 0 || !ok {
			return nil
		}
		w.left = 0
		return w.decode(text)
	}
	for w.left > 0 {
		name, text, ok := w.elements.next()
		if !ok {
			break
		}
		if s.isSignature(name) {
			if signature := w.decode(text); signature != nil {
				w.left--
				return signature
			}
		}
	}
	return nil
}

func (w *signatures) decode(text string) []byte {
	size := w.of.algorithm.size
	if size == 0 {
		return decodeVarying(w.of.encoding, text)
	}
	if !decode(w.of.encoding, w.buf[:size], text) {
		return nil
	}
	return w.buf[:size]
}
