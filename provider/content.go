package provider

import (
	"hash/crc32"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxFormFields bounds the fields of a form that are sorted.
	maxFormFields = 10_000
	// maxSignedHeaders bounds the headers that a delivery may list.
	maxSignedHeaders = 64
)

// content is what is signed, of one delivery.
type content struct {
	c         *Compiled // whose identity {id} is
	by        *Compiled // by which d is read: c, or that of one element
	d         *Delivery
	s         *scheme
	timestamp string
	url       string
	secret    string
}

// each calls text with the content's texts in order, and body with the body, which is passed as it is.
func (ct *content) each(text func(string), body func([]byte)) error {
	for i := range ct.s.content {
		seg := &ct.s.content[i]
		if seg.kind == segmentBody {
			body(ct.d.Body)
			continue
		}
		if err := ct.segment(seg, text); err != nil {
			return err
		}
	}
	return nil
}

func (ct *content) segment(seg *segment, text func(string)) error {
	d := ct.d
	value, ok := "", true
	switch seg.kind {
	case segmentText:
		value = seg.name
	case segmentTimestamp:
		value = ct.timestamp
	case segmentID:
		value = ct.c.signedID(d, ct.s)
		ok = value != ""
	case segmentURL, segmentURLDecoded:
		value, ok = ct.url, ct.url != ""
		if seg.kind == segmentURLDecoded {
			value = unescapeOnly(value, seg.name)
		}
	case segmentHeader:
		lines := d.Header[seg.name]
		if ok = len(lines) == 1; ok {
			value = lines[0]
		}
	case segmentPlaceholder:
		if ok = d.Placeholder != nil; ok {
			value, ok = d.Placeholder(seg.name)
		}
	case segmentMethod:
		value, ok = d.Method, d.Method != ""
	case segmentPath, segmentPathEncoded:
		if value, ok = pathOf(ct.url); ok && seg.kind == segmentPathEncoded {
			value = encodePath(value)
		}
	case segmentValue:
		value = ct.by.value(d, &seg.source)
		ok = value != "" || seg.optional
	case segmentJSONLines:
		return ct.jsonLines(seg, text)
	case segmentSortedForm:
		return ct.sortedForm(text)
	case segmentSignedHeaders:
		return ct.signedHeaders(seg, text)
	case segmentCRC32:
		value = strconv.FormatUint(uint64(crc32.ChecksumIEEE(d.Body)), 10)
	case segmentSecret:
		value, ok = ct.secret, ct.secret != ""
	}
	if !ok {
		return ErrContentMissing
	}
	text(value)
	return nil
}

func (ct *content) jsonLines(seg *segment, text func(string)) error {
	values := ct.by.values(ct.d)
	for _, line := range seg.lines {
		value := values[line.slot]
		if value == "" {
			if line.optional {
				continue
			}
			return ErrContentMissing
		}
		text(line.name)
		text("\n")
		text(value)
		text("\n")
	}
	return nil
}

// sortedForm writes the fields in the order of their names' bytes. A form that can't be read as a whole is refused: the
// application might read it in another way.
func (ct *content) sortedForm(text func(string)) error {
	form := ct.by.form(ct.d)
	if len(form) != len(ct.d.Body) {
		return ErrContentMalformed // not a form, or compressed
	}
	type field struct{ name, value string }
	var fields []field
	for form != "" {
		pair, rest, _ := strings.Cut(form, "&")
		form = rest
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return ErrContentMalformed
		}
		if value, err = url.QueryUnescape(value); err != nil || len(fields) == maxFormFields {
			return ErrContentMalformed
		}
		fields = append(fields, field{name, value})
	}
	slices.SortFunc(fields, func(a, b field) int {
		if n := strings.Compare(a.name, b.name); n != 0 {
			return n
		}
		return strings.Compare(a.value, b.value)
	})
	for _, f := range slices.Compact(fields) {
		text(f.name)
		text(f.value)
	}
	return nil
}

// signedHeaders writes the headers that the delivery lists.
func (ct *content) signedHeaders(seg *segment, text func(string)) error {
	lines := ct.d.Header[seg.name]
	if len(lines) != 1 {
		return ErrContentMissing
	}
	names := strings.Split(lines[0], ",")
	if len(names) > maxSignedHeaders {
		return ErrContentMalformed
	}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		return ErrContentMalformed
	}
	for _, must := range []string{seg.name, ct.s.timeHeader, ct.s.idHeader} {
		if must != "" && !slices.Contains(names, strings.ToLower(must)) {
			return ErrContentMalformed
		}
	}
	for i, name := range names {
		canonical, err := headerName(name)
		if err != nil {
			return ErrContentMalformed
		}
		lines := ct.d.Header[canonical]
		if len(lines) != 1 {
			return ErrContentMissing
		}
		if i > 0 {
			text(";")
		}
		text(name)
		text(":")
		text(strings.TrimSpace(lines[0]))
	}
	return nil
}

// signedID is what {id} stands for.
func (c *Compiled) signedID(d *Delivery, s *scheme) string {
	if s.idHeader != "" {
		if lines := d.Header[s.idHeader]; len(lines) == 1 {
			return lines[0]
		}
		return ""
	}
	if len(c.eventID) == 0 {
		return ""
	}
	return c.value(d, &c.eventID[0][0])
}

// urls are the URLs that may have been signed; the second may be empty.
func (s *scheme) urls(d *Delivery) [2]string {
	if s.portVariants {
		return [2]string{d.URL, otherPort(d.URL)}
	}
	return [2]string{d.URL}
}

// otherPort is the URL without its port, or with the default one if it has none; empty if it is no URL.
func otherPort(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, rest := rest[:end], rest[end:]
	// The colons of an IPv6 address are in brackets.
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return scheme + "://" + host[:i] + rest
	}
	port := ":80"
	if strings.EqualFold(scheme, "https") {
		port = ":443"
	}
	return scheme + "://" + host + port + rest
}

// pathOf is a URL's path and query, as they are written.
func pathOf(address string) (string, bool) {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "", false
	}
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/", true
	case rest[i] == '?':
		return "/" + rest[i:], true
	}
	return rest[i:], true
}

// unescapeOnly decodes the percent-encodings of the characters.
func unescapeOnly(s, characters string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil && strings.IndexByte(characters, byte(n)) >= 0 {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const (
	escapeKeeps    = "-_.!~*'()"
	encodeURIKeeps = escapeKeeps + ";/?:@&=+$,#"
)

// encodePath encodes a path as encodeURI does, and its query, up to a second question mark, as encodeURI does after a whole escape.
func encodePath(path string) string {
	path, query, _ := strings.Cut(path, "?")
	query, _, _ = strings.Cut(query, "?")
	if query != "" {
		path += "?" + percentEncode(query, escapeKeeps)
	}
	return percentEncode(path, encodeURIKeeps)
}

func percentEncode(s, keep string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
