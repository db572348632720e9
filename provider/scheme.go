package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Scheme is how deliveries are signed. It is also the JSON form of an own provider's signature:
//
//	{
//	  "algorithm": "hmac-sha256",
//	  "header": "X-Acme-Signature",
//	  "prefix": "sha256=",
//	  "encoding": "hex",
//	  "content": "{timestamp}.{body}",
//	  "timestamp": {"from": "header", "name": "X-Acme-Timestamp"}
//	}
type Scheme struct {
	// Algorithm is hmac-sha1, hmac-sha256, hmac-sha512, ed25519, ecdsa-p256-sha256 (ASN.1 signature), token: the header is the
	// secret itself, or basic: the header is an Authorization whose user:password is the secret.
	Algorithm string `json:"algorithm"`
	// Header is the name of the header that holds the signature.
	Header string `json:"header"`
	// Prefix is what stands before the signature in a header that holds only one, "sha256=" say. Default none.
	Prefix string `json:"prefix,omitempty"`
	// List describes a header that holds several named elements instead.
	List *List `json:"list,omitempty"`
	// Encoding of the signature: hex (the default, in either case), base64, or base64url, padded or not.
	Encoding string `json:"encoding,omitempty"`
	// Content is what is signed, default {body}. It may contain {body}, {timestamp} (its text as sent), {id} (the value of
	// IDHeader, else the event ID's first source), {url}, {header:<name>}, and {http.request.*} placeholders. A brace
	// that is none of these is an error, and so is content without {body}. See Extended for more.
	Content string `json:"content,omitempty"`
	// Timestamp says where the signed time is. Without it deliveries of any age are accepted.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// IDHeader is the header that {id} stands for, where the scheme signs an ID.
	IDHeader string `json:"id_header,omitempty"`
	// KeyEncoding is how a secret writes the key: raw (the default: its bytes are the key), base64 or hex. A public key of
	// ecdsa-p256-sha256 is PEM, or its DER (SPKI) in base64, whatever this says.
	KeyEncoding string `json:"key_encoding,omitempty"`
	// KeyPrefix is removed from a secret that starts with it, before decoding.
	KeyPrefix string `json:"key_prefix,omitempty"`
	// KeyPrefixRequired says that only secrets with KeyPrefix are for this scheme.
	KeyPrefixRequired bool `json:"key_prefix_required,omitempty"`
	// PrivateKeyPrefix is the prefix of an ed25519 private key, which can sign samples but is refused for verification.
	PrivateKeyPrefix string `json:"private_key_prefix,omitempty"`

	// The fields below are for the catalogue. Algorithm may also be sha256 (a plain hash, of content with {secret}), rsa-sha1 and
	// rsa-sha256 (PKCS #1 v1.5, with Certificate), and jwt-es256 (the header is a JWT, see BodyHash).

	// When are conditions on deliveries for this scheme, all of which must hold.
	When []Condition `json:"-"`
	// OnlyHandshakes: deliveries of events are never verified by this scheme, signed handshakes are.
	OnlyHandshakes bool `json:"-"`
	// Signature is where the signature is, if not in Header: json, form or query.
	Signature *Source `json:"-"`
	// Also are further headers that may each hold a signature, made with another key. Only for HMACs without a List.
	Also []string `json:"-"`
	// Each is the path of the elements of a batch that are signed one by one: Signature, and {json:<path>} in Content, start at the
	// element. All of them must verify, and there must be one.
	Each string `json:"-"`
	// Extended allows more in Content:
	//   - {method}: the HTTP method; {path}: the path and query of {url}; {path_encoded}: the path as JavaScript's encodeURI
	//     writes it, the query as encodeURI does after a whole escape.
	//   - {url_decoded:<characters>}: {url}, these characters' percent-encodings decoded.
	//   - {json:<path>}, {form:<field>}, {query:<name>}: the value; with a ? before the colon a missing one is empty.
	//   - {json_lines:a,b?,c}: the member's name and a line feed, its value and a line feed, for each; one with ? may be missing.
	//   - {sorted_form}: of a form the names in order of their bytes, each followed by its value. A name given several times is
	//     repeated with each of its distinct values in order.
	//   - {signed_headers:<name>}: the headers that this one lists, separated by commas: in order of their names in lower
	//     case name:value, joined by semicolons. The list must name itself, and the timestamp's header.
	//   - {crc32}: the body's CRC-32 (IEEE) as a decimal number; it stands for {body}.
	//   - {secret}: the secret's text. For schemes without a MAC.
	Extended bool `json:"-"`
	// BodyUnsigned allows Content without anything that stands for the body: {body}, {sorted_form} or {crc32}. Whoever has seen one
	// such delivery can send its signature with another body.
	BodyUnsigned bool `json:"-"`
	// EmptyBody refuses a delivery with a body, so that Content needs none.
	EmptyBody bool `json:"-"`
	// BodyHash is where the body's SHA-256 in hex is, which is compared, so that Content needs no body: a query parameter where
	// Content has {url}, or claim, with the claim's name, of a JWT.
	BodyHash *Source `json:"-"`
	// PortVariants tries {url} as it is and, where it has a port, without; where it has none, with the default one.
	PortVariants bool `json:"-"`
	// KeyHash is a hash of the decoded secret that is the key: sha1 or sha256. Default none.
	KeyHash string `json:"-"`
	// KeyName is the character that may separate the key's name from the key in a secret: name|key. The name is for [Answer]
	// and for signing a List in which signatures have the key's name.
	KeyName string `json:"-"`
	// RefusedSecrets are secrets that everybody knows.
	RefusedSecrets []string `json:"-"`
	// Certificate is that of an rsa scheme.
	Certificate *Certificate `json:"-"`
	// Pin is a value of the delivery that the secret must equal: where anybody can have the provider sign something, the key
	// of an endpoint doesn't tell whose events they are. It must be signed.
	Pin *Source `json:"-"`
}

// Certificate is the certificate that a delivery names.
type Certificate struct {
	// URL is where the delivery says what its certificate's URL is.
	URL Source
	// Pattern is a regular expression that the whole URL must match. It must pin the scheme, https, and the host.
	Pattern string
	// Names are patterns of the certificate's DNS names, or of its common name where it has none; one must match.
	Names []string
}

// List is the layout of a signature header with several elements, such as t=1700000000,v1=5257a8…,v1=8f21… (Stripe) or
// v1,g0hM9S… v1,bm9ldH… (Standard Webhooks). Any signature in it may match; elements that are neither a named signature nor the
// timestamp are ignored, and so are signatures that can't be decoded, and everything after the first 256 elements.
type List struct {
	// Separator stands between elements: one character. White space around elements is ignored.
	Separator string `json:"separator"`
	// Assign stands between an element's name and its value: one character. Empty: elements have no names written, the first
	// is called 1, the second 2, and so on.
	Assign string `json:"assign"`
	// Names are the names of elements that are signatures; * is all but the timestamp's.
	Names []string `json:"names"`
}

// Timestamp is where the signed time is and how it is written.
type Timestamp struct {
	// From is header, element (of the signature header's List), json, form, or claim (of a JWT).
	From string `json:"from"`
	// Name is the header's, element's, field's or claim's name, or the JSON path.
	Name string `json:"name"`
	// Format is unix (seconds, the default), unix_ms, unix_auto (seconds or milliseconds, by the number's size) or rfc3339.
	Format string `json:"format,omitempty"`
}

// The values of [Timestamp.Format], and FromElement and FromClaim for [Timestamp.From].
const (
	FromElement    = "element"
	FromClaim      = "claim"
	FormatUnix     = "unix"
	FormatUnixMS   = "unix_ms"
	FormatUnixAuto = "unix_auto"
	FormatRFC3339  = "rfc3339"
)

const (
	// maxSignatureHeader bounds the signature header, in bytes.
	maxSignatureHeader = 8 << 10
	// maxElements bounds how many elements of a list header are looked at.
	maxElements = 256
	// maxHMACs and maxPublicKeySignatures bound how many signatures of one header are tried; the latter cost more.
	maxHMACs               = 32
	maxPublicKeySignatures = 8
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
