package provider

import (
	"fmt"
	"slices"
)

// scheme is a Scheme made ready.
type scheme struct {
	algorithm  algorithm
	place      string   // where the signature is; schemes of one place are alternatives
	headers    []string // canonical, empty if the signature is elsewhere
	signature  *source  // elsewhere
	each       *batch   // elements that are signed one by one
	prefix     string
	separator  string
	assign     string
	names      []string // nil: no list
	encoding   string
	content    template
	timestamp  *Timestamp
	timeHeader string // canonical, if the timestamp is a header
	timeSlot   int    // if it is a JSON path or a claim
	idHeader   string
	signed     []string // canonical names of the other headers that belong to the signature
	key        keyFormat

	when           []condition
	onlyHandshakes bool
	emptyBody      bool
	portVariants   bool
	bodyHash       *Source
	hashSlot       int
	claims         *paths // of a JWT
	certificate    *certificate
	pin            *source
}

func (c *Compiled) scheme(s Scheme) (*scheme, error) {
	var err error
	out := &scheme{prefix: s.Prefix, timeSlot: -1, onlyHandshakes: s.OnlyHandshakes, emptyBody: s.EmptyBody, portVariants: s.PortVariants}
	if out.algorithm, err = algorithmNamed(s.Algorithm); err != nil {
		return nil, err
	}
	by, err := out.setPlace(c, s)
	if err != nil {
		return nil, err
	}
	if s.IDHeader != "" {
		if out.idHeader, err = headerName(s.IDHeader); err != nil {
			return nil, fmt.Errorf("id_header: %w", err)
		}
		out.signed = append(out.signed, out.idHeader)
	}
	if out.key, err = s.keyFormat(); err != nil {
		return nil, err
	}
	if out.when, err = c.conditions(s.When); err != nil {
		return nil, err
	}
	if out.algorithm.isToken() {
		if s.List != nil || s.Encoding != "" || s.Content != "" || s.Timestamp != nil || s.Each != "" {
			return nil, fmt.Errorf("algorithm %s: list, encoding, content and timestamp don't apply", s.Algorithm)
		}
		return out, nil
	}
	if err = out.setPublicKey(c, s); err != nil {
		return nil, err
	}
	if out.encoding, err = encodingNamed("encoding", s.Encoding, encodingHex, encodingHex, encodingBase64, encodingBase64URL); err != nil {
		return nil, err
	}
	if err = out.setList(s); err != nil {
		return nil, err
	}
	if err = out.setTimestamp(c, s); err != nil {
		return nil, err
	}
	if out.algorithm.kind == kindJWT {
		return out, nil
	}
	if err = out.setContent(by, s); err != nil {
		return nil, err
	}
	slices.Sort(out.signed)
	out.signed = slices.Compact(out.signed)
	return out, nil
}

// setPlace sets where the signature is, and returns what reads the signed values: c, or the reader of one element.
func (s *scheme) setPlace(c *Compiled, from Scheme) (by *Compiled, err error) {
	by = c
	if from.Each != "" {
		if s.each, err = newBatch(&Batch{Paths: []string{from.Each}}); err != nil {
			return nil, fmt.Errorf("each: %w", err)
		}
		if by = s.each.element; from.Signature == nil || from.Signature.From != FromJSON || from.List != nil || from.Timestamp != nil || !s.algorithm.isMAC() {
			return nil, fmt.Errorf("each: needs a MAC whose signature is json, without list and timestamp")
		}
	}
	if from.Signature != nil {
		if from.Header != "" || len(from.Also) > 0 {
			return nil, fmt.Errorf("header and signature exclude each other")
		}
		switch from.Signature.From {
		case FromJSON, FromForm, FromQuery:
		default:
			return nil, fmt.Errorf("signature from %q is not known, allowed are json, form, query", from.Signature.From)
		}
		src, err := by.source(*from.Signature)
		if err != nil {
			return nil, fmt.Errorf("signature: %w", err)
		}
		s.signature, s.place = &src, from.Signature.From+" "+from.Signature.Name+" "+from.Each
		return by, nil
	}
	for i, name := range append([]string{from.Header}, from.Also...) {
		canonical, err := headerName(name)
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		if i > 0 && (!s.algorithm.isMAC() || from.List != nil) {
			return nil, fmt.Errorf("also: is for MACs without a list")
		}
		s.headers = append(s.headers, canonical)
	}
	s.place = s.headers[0]
	return by, nil
}

// setPublicKey sets what is for schemes with a certificate or a token of claims.
func (s *scheme) setPublicKey(c *Compiled, from Scheme) (err error) {
	if (s.algorithm.kind == kindRSA) != (from.Certificate != nil) {
		return fmt.Errorf("certificate: is for rsa schemes, which need one")
	}
	if from.Certificate != nil {
		if s.certificate, err = c.certificate(from.Certificate); err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
	}
	if from.Pin != nil {
		pin, err := c.source(*from.Pin)
		if err != nil {
			return fmt.Errorf("pin: %w", err)
		}
		if s.pin = &pin; s.algorithm.kind != kindRSA {
			return fmt.Errorf("pin: is for rsa schemes")
		}
	}
	if from.BodyHash != nil {
		s.bodyHash = from.BodyHash
	}
	if s.algorithm.kind != kindJWT {
		return nil
	}
	if from.Content != "" || from.List != nil || from.Prefix != "" || s.signature != nil || from.BodyHash == nil || from.BodyHash.From != FromClaim {
		return fmt.Errorf("algorithm %s: needs a header and a body hash that is a claim, and nothing else", from.Algorithm)
	}
	s.claims = newPaths()
	if s.hashSlot, err = s.claims.add(from.BodyHash.Name); err != nil {
		return fmt.Errorf("body hash: %w", err)
	}
	return nil
}

func (s *scheme) setList(from Scheme) error {
	l := from.List
	if l == nil {
		return nil
	}
	switch {
	case from.Prefix != "":
		return fmt.Errorf("prefix and list exclude each other")
	case len(l.Separator) != 1 || len(l.Assign) > 1 || l.Separator == l.Assign:
		return fmt.Errorf("list: separator and assign must be one character each, and different")
	case len(l.Names) == 0 || slices.Contains(l.Names, ""):
		return fmt.Errorf("list: names must hold the names of the signature elements")
	}
	s.separator, s.assign, s.names = l.Separator, l.Assign, slices.Clone(l.Names)
	return nil
}

func (s *scheme) setTimestamp(c *Compiled, from Scheme) error {
	if from.Timestamp == nil {
		return nil
	}
	t := *from.Timestamp
	s.timestamp = &t
	switch t.Format {
	case "":
		t.Format = FormatUnix
	case FormatUnix, FormatUnixMS, FormatUnixAuto, FormatRFC3339:
	default:
		return fmt.Errorf("timestamp format %q is not known, allowed are unix, unix_ms, rfc3339, unix_auto", t.Format)
	}
	if (t.From == FromClaim) != (s.claims != nil) {
		return fmt.Errorf("timestamp from %q: a JWT's is a claim", t.From)
	}
	var err error
	switch t.From {
	case FromHeader:
		name, err := headerName(t.Name)
		if err != nil {
			return fmt.Errorf("timestamp: %w", err)
		}
		s.timeHeader = name
		s.signed = append(s.signed, name)
	case FromElement:
		if s.names == nil {
			return fmt.Errorf("timestamp element %q: the signature header is not a list", t.Name)
		}
		if t.Name == "" || t.Name == "*" || slices.Contains(s.names, t.Name) {
			return fmt.Errorf("timestamp element %q: must be the name of an element that is not a signature", t.Name)
		}
	case FromForm:
		if t.Name == "" {
			return fmt.Errorf("timestamp form: name is empty")
		}
	case FromJSON:
		s.timeSlot, err = c.paths.add(t.Name)
	case FromClaim:
		s.timeSlot, err = s.claims.add(t.Name)
	default:
		return fmt.Errorf("timestamp from %q is not known, allowed are header, element, json, form", t.From)
	}
	if err != nil {
		return fmt.Errorf("timestamp: %w", err)
	}
	return nil
}

func (s *scheme) setContent(by *Compiled, from Scheme) error {
	content := from.Content
	if content == "" {
		content = "{body}"
	}
	var err error
	if s.content, err = by.parseTemplate(content, from.Extended); err != nil {
		return err
	}
	if s.bodyHash != nil {
		if s.bodyHash.From != FromQuery || s.bodyHash.Name == "" || !s.content.has(segmentURL) {
			return fmt.Errorf("body hash: must be a query parameter, and content must have {url}")
		}
	}
	covered := s.content.has(segmentBody, segmentSortedForm, segmentCRC32) || s.bodyHash != nil || from.EmptyBody || from.BodyUnsigned
	if !covered {
		return fmt.Errorf("content %q: lacks {body}, so anybody could change the body", content)
	}
	for _, seg := range s.content {
		if seg.kind == segmentHeader || seg.kind == segmentSignedHeaders {
			s.signed = append(s.signed, seg.name)
		}
	}
	timeInHeader := s.timestamp != nil && (s.timestamp.From == FromHeader || s.timestamp.From == FromElement)
	switch {
	case s.timestamp == nil && s.content.has(segmentTimestamp):
		return fmt.Errorf("content %q: {timestamp} needs a timestamp", content)
	case timeInHeader && !s.content.has(segmentTimestamp) && !s.content.hasHeader(s.timeHeader):
		return fmt.Errorf("content %q: lacks {timestamp}, so anybody could change the timestamp", content)
	case s.idHeader != "" && !s.content.has(segmentID) && !s.content.hasHeader(s.idHeader):
		return fmt.Errorf("content %q: lacks {id}, so anybody could change the id_header", content)
	case s.content.has(segmentSecret) != (s.algorithm.kind == kindHash) && s.algorithm.kind != kindRSA:
		return fmt.Errorf("content %q: {secret} is what a plain hash needs and a MAC doesn't", content)
	case s.algorithm.kind == kindRSA && s.pin == nil && !s.content.has(segmentSecret):
		return fmt.Errorf("content %q: without {secret} or a pin any customer of the provider could sign", content)
	}
	return nil
}
