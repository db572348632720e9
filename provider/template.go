package provider

import (
	"fmt"
	"strings"
)

type segmentKind int

const (
	segmentText segmentKind = iota
	segmentBody
	segmentTimestamp
	segmentID
	segmentURL
	segmentHeader
	segmentPlaceholder
)

// segment is a stretch of the signed content. Its name is the text, the header (canonical) or the placeholder.
type segment struct {
	kind segmentKind
	name string
}

// template is the signed content, in order.
type template []segment

const allBraces = "{body}, {timestamp}, {id}, {url}, {header:<name>} and {http.request.*}"

// parseTemplate parses a Scheme's Content.
func parseTemplate(content string) (template, error) {
	var t template
	for rest := content; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(t, segment{segmentText, rest}), nil
		}
		if open > 0 {
			t = append(t, segment{segmentText, rest[:open]})
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return nil, fmt.Errorf("content %q: unpaired brace, allowed in braces are %s", content, allBraces)
		}
		seg, err := parseBraces(rest[open+1 : end])
		if err != nil {
			return nil, fmt.Errorf("content %q: %w", content, err)
		}
		t = append(t, seg)
		rest = rest[end+1:]
	}
	return t, nil
}

func parseBraces(name string) (segment, error) {
	switch name {
	case "body":
		return segment{kind: segmentBody}, nil
	case "timestamp":
		return segment{kind: segmentTimestamp}, nil
	case "id":
		return segment{kind: segmentID}, nil
	case "url":
		return segment{kind: segmentURL}, nil
	case "http.request.body":
		return segment{}, fmt.Errorf("{http.request.body} is {body} here")
	}
	if header, ok := strings.CutPrefix(name, "header:"); ok {
		canonical, err := headerName(header)
		if err != nil {
			return segment{}, fmt.Errorf("{%s}: %w", name, err)
		}
		return segment{segmentHeader, canonical}, nil
	}
	if rest, ok := strings.CutPrefix(name, "http.request."); ok && rest != "" && !strings.ContainsAny(rest, "{ ") {
		return segment{segmentPlaceholder, name}, nil
	}
	return segment{}, fmt.Errorf("{%s} is not known, allowed are %s", name, allBraces)
}

func (t template) has(kind segmentKind) bool {
	for _, s := range t {
		if s.kind == kind {
			return true
		}
	}
	return false
}

func (t template) hasHeader(name string) bool {
	for _, s := range t {
		if s.kind == segmentHeader && s.name == name {
			return true
		}
	}
	return false
}

// each calls write with the content's texts in order, and with the body, which is passed as it is.
func (c *Compiled) each(d *Delivery, s *scheme, timestamp string, text func(string), body func([]byte)) error {
	for i := range s.content {
		seg := &s.content[i]
		switch seg.kind {
		case segmentText:
			text(seg.name)
		case segmentBody:
			body(d.Body)
		case segmentTimestamp:
			text(timestamp)
		case segmentID:
			id := c.signedID(d, s)
			if id == "" {
				return ErrContentMissing
			}
			text(id)
		case segmentURL:
			if d.URL == "" {
				return ErrContentMissing
			}
			text(d.URL)
		case segmentHeader:
			lines := d.Header[seg.name]
			if len(lines) != 1 {
				return ErrContentMissing
			}
			text(lines[0])
		case segmentPlaceholder:
			if d.Placeholder == nil {
				return ErrContentMissing
			}
			v, ok := d.Placeholder(seg.name)
			if !ok {
				return ErrContentMissing
			}
			text(v)
		}
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
