package provider

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads JSON token by token. It takes what applications' parsers take: duplicate members, of which the last wins at
// every level, and broken UTF-8, which becomes U+FFFD. Everything else that is not JSON, and nesting deeper than 10,000, is an
// error. It recurses along the wanted paths only, so a body never decides how deep.
type scanner struct {
	buf   bytes.Buffer
	dec   *jsontext.Decoder
	spans []span
	text  []byte
}

// span is where a value lies in the body; end 0: nowhere.
type span struct{ start, end int64 }

var (
	lenient  = jsontext.AllowDuplicateNames(true)
	mangling = jsontext.AllowInvalidUTF8(true)

	errTrailing = errors.New("data after the JSON value")
)

var scanners = sync.Pool{New: func() any {
	s := new(scanner)
	s.dec = jsontext.NewDecoder(&s.buf)
	return s
}}

func newScanner(body []byte) *scanner {
	s := scanners.Get().(*scanner)
	// The decoder parses a bytes.Buffer's bytes in place, so the body is not copied.
	s.buf = *bytes.NewBuffer(body)
	s.dec.Reset(&s.buf, lenient, mangling)
	return s
}

// free gives the scanner back, without the body.
func (s *scanner) free() {
	s.buf = bytes.Buffer{}
	s.dec.Reset(&s.buf)
	scanners.Put(s)
}

// lookup returns the paths' values by slot, empty where there is none. All are empty if the body is not one JSON value.
func (p *paths) lookup(body []byte) []string {
	values := make([]string, p.size)
	s := newScanner(body)
	defer s.free()
	if s.locate(p) != nil {
		return values
	}
	for i, at := range s.spans {
		values[i] = s.scalar(body[at.start:at.end])
	}
	return values
}

// locate finds where the paths' values are in the body.
func (s *scanner) locate(p *paths) error {
	if cap(s.spans) < p.size {
		s.spans = make([]span, p.size)
	}
	s.spans = s.spans[:p.size]
	clear(s.spans)
	if err := s.find(&p.root); err != nil {
		return err
	}
	return s.end()
}

// end reports whether nothing but white space is left.
func (s *scanner) end() error {
	if _, err := s.dec.ReadToken(); err != io.EOF {
		return errTrailing
	}
	return nil
}

// find reads the value at n and notes where the wanted values below it are.
func (s *scanner) find(n *node) error {
	kind := s.dec.PeekKind()
	if kind != '{' && kind != '[' {
		v, err := s.dec.ReadValue()
		if err == nil && n.slot >= 0 {
			end := s.dec.InputOffset()
			s.spans[n.slot] = span{end - int64(len(v)), end}
		}
		return err
	}
	if len(n.children) == 0 {
		return s.dec.SkipValue()
	}
	return s.each(kind, n, func(child *node, _ []byte) error {
		if child == nil {
			return s.dec.SkipValue()
		}
		s.forget(child)
		return s.find(child)
	})
}

// each reads the object or array at n and calls visit before each of its values, with the child of n that it matches, or nil, and the
// quoted name of an object's member.
func (s *scanner) each(kind jsontext.Kind, n *node, visit func(child *node, name []byte) error) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	// '}' and ']' lie two after their opening brackets in ASCII. On an error PeekKind is neither, and the next read returns it.
	for i := 0; s.dec.PeekKind() != kind+2; i++ {
		var child *node
		var name []byte
		if kind == '{' {
			quoted, err := s.dec.ReadValue()
			if err != nil {
				return err
			}
			name = quoted
			child = s.member(n, quoted)
		} else {
			child = n.at(i)
		}
		if err := visit(child, name); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

// forget drops what an earlier member of the same name left.
func (s *scanner) forget(n *node) {
	if n.slot >= 0 {
		s.spans[n.slot] = span{}
	}
	for _, c := range n.children {
		s.forget(c)
	}
}

func (s *scanner) member(n *node, quoted []byte) *node {
	if len(n.children) == 0 {
		return nil
	}
	name := s.unquote(quoted)
	for _, c := range n.children {
		if string(name) == c.step.name {
			return c
		}
	}
	return nil
}

// unquote returns a JSON string's text, valid until the next call.
func (s *scanner) unquote(quoted []byte) []byte {
	raw := quoted[1 : len(quoted)-1]
	for _, b := range raw {
		if b == '\\' || b >= 0x80 {
			// The error is about broken UTF-8, which has been replaced.
			s.text, _ = jsontext.AppendUnquote(s.text[:0], quoted)
			return s.text
		}
	}
	return raw
}

// scalar is the text of a string, the literal of a number or boolean, and empty for everything else.
func (s *scanner) scalar(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		return string(s.unquote(raw))
	case 'n', '{', '[':
		return ""
	}
	return string(raw)
}

// hashExcept writes the body's tokens to h, those at the paths left out, so that white space and the spelling of strings don't
// count. It reports whether the body is one JSON value.
func (p *paths) hashExcept(h hash.Hash, body []byte) bool {
	s := newScanner(body)
	defer s.free()
	return s.hash(h, &p.root) == nil && s.end() == nil
}

var anything = &node{slot: -1}

func (s *scanner) hash(h hash.Hash, n *node) error {
	kind := s.dec.PeekKind()
	if kind != '{' && kind != '[' {
		return s.hashScalar(h)
	}
	if len(n.children) == 0 {
		return s.hashAll(h)
	}
	h.Write([]byte{byte(kind)})
	err := s.each(kind, n, func(child *node, name []byte) error {
		if child != nil && child.slot >= 0 {
			return s.dec.SkipValue()
		}
		if name != nil {
			s.hashString(h, name)
		}
		if child == nil {
			child = anything
		}
		return s.hash(h, child)
	})
	h.Write([]byte{byte(kind + 2)})
	return err
}

// hashAll hashes a whole value without recursion.
func (s *scanner) hashAll(h hash.Hash) error {
	for depth := s.dec.StackDepth(); ; {
		switch kind := s.dec.PeekKind(); kind {
		case '{', '[', '}', ']':
			if _, err := s.dec.ReadToken(); err != nil {
				return err
			}
			h.Write([]byte{byte(kind)})
		default:
			if err := s.hashScalar(h); err != nil {
				return err
			}
		}
		if s.dec.StackDepth() <= depth {
			return nil
		}
	}
}

func (s *scanner) hashScalar(h hash.Hash) error {
	v, err := s.dec.ReadValue()
	if err != nil {
		return err
	}
	if v[0] == '"' {
		s.hashString(h, v)
	} else {
		hashText(h, '0', v)
	}
	return nil
}

func (s *scanner) hashString(h hash.Hash, quoted []byte) { hashText(h, '"', s.unquote(quoted)) }

// hashText frames a text with its kind and length, so that no two sequences of tokens are the same bytes.
func hashText(h hash.Hash, kind byte, text []byte) {
	var head [9]byte
	head[0] = kind
	binary.BigEndian.PutUint64(head[1:], uint64(len(text)))
	h.Write(head[:])
	h.Write(text)
}
