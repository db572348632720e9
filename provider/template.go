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

	// Of the catalogue only, see [Scheme.Extended].
	segmentMethod
	segmentPath
	segmentPathEncoded
	segmentURLDecoded
	segmentValue
	segmentJSONLines
	segmentSortedForm
	segmentSignedHeaders
	segmentCRC32
	segmentSecret
)

// segment is a stretch of the signed content. Its name is the text, the header (canonical), the placeholder or the characters.
type segment struct {
	kind     segmentKind
	name     string
	source   source     // of a value
	optional bool       // a missing value is empty
	lines    []jsonLine // of json_lines
}

// jsonLine is a member whose name and value are signed.
type jsonLine struct {
	name     string
	slot     int
	optional bool
}

// template is the signed content, in order.
type template []segment

const (
	allBraces      = "{body}, {timestamp}, {id}, {url}, {header:<name>} and {http.request.*}"
	extendedBraces = "{method}, {path}, {path_encoded}, {url_decoded:<characters>}, {json:<path>}, {form:<field>}, {query:<name>}, " +
		"{json_lines:<names>}, {sorted_form}, {signed_headers:<name>}, {crc32}, {secret}, "
)

// parseTemplate parses a Scheme's Content. What it reads from the delivery is looked up by c.
func (c *Compiled) parseTemplate(content string, extended bool) (template, error) {
	allowed := allBraces
	if extended {
		allowed = extendedBraces + allBraces
	}
	var t template
	for rest := content; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(t, segment{name: rest}), nil
		}
		if open > 0 {
			t = append(t, segment{name: rest[:open]})
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return nil, fmt.Errorf("content %q: unpaired brace, allowed in braces are %s", content, allowed)
		}
		name := rest[open+1 : end]
		seg, ok, err := parseBraces(name)
		if !ok && err == nil && extended {
			seg, ok, err = c.parseExtended(name)
		}
		if !ok && err == nil {
			err = fmt.Errorf("{%s} is not known, allowed are %s", name, allowed)
		}
		if err != nil {
			return nil, fmt.Errorf("content %q: %w", content, err)
		}
		t = append(t, seg)
		rest = rest[end+1:]
	}
	return t, nil
}

// parseBraces parses what every scheme may contain; false if it is something else.
func parseBraces(name string) (segment, bool, error) {
	switch name {
	case "body":
		return segment{kind: segmentBody}, true, nil
	case "timestamp":
		return segment{kind: segmentTimestamp}, true, nil
	case "id":
		return segment{kind: segmentID}, true, nil
	case "url":
		return segment{kind: segmentURL}, true, nil
	case "http.request.body":
		return segment{}, false, fmt.Errorf("{http.request.body} is {body} here")
	}
	if header, ok := strings.CutPrefix(name, "header:"); ok {
		canonical, err := headerName(header)
		if err != nil {
			return segment{}, false, fmt.Errorf("{%s}: %w", name, err)
		}
		return segment{kind: segmentHeader, name: canonical}, true, nil
	}
	if rest, ok := strings.CutPrefix(name, "http.request."); ok && rest != "" && !strings.ContainsAny(rest, "{ ") {
		return segment{kind: segmentPlaceholder, name: name}, true, nil
	}
	return segment{}, false, nil
}

// parseExtended parses what only the catalogue's schemes may contain.
func (c *Compiled) parseExtended(name string) (seg segment, ok bool, err error) {
	kind, argument, _ := strings.Cut(name, ":")
	kind, seg.optional = strings.CutSuffix(kind, "?")
	seg.name = argument
	switch kind {
	case "method":
		seg.kind = segmentMethod
	case "path":
		seg.kind = segmentPath
	case "path_encoded":
		seg.kind = segmentPathEncoded
	case "sorted_form":
		seg.kind = segmentSortedForm
	case "crc32":
		seg.kind = segmentCRC32
	case "secret":
		seg.kind = segmentSecret
	case "url_decoded":
		seg.kind = segmentURLDecoded
	case "signed_headers":
		seg.kind = segmentSignedHeaders
		seg.name, err = headerName(argument)
	case FromJSON, FromForm, FromQuery:
		seg.kind = segmentValue
		seg.source, err = c.source(Source{From: kind, Name: argument})
	case "json_lines":
		seg.kind = segmentJSONLines
		seg.lines, err = c.jsonLines(argument)
	default:
		return seg, false, nil
	}
	if err != nil {
		err = fmt.Errorf("{%s}: %w", name, err)
	}
	return seg, err == nil, err
}

func (c *Compiled) jsonLines(names string) ([]jsonLine, error) {
	var lines []jsonLine
	for name := range strings.SplitSeq(names, ",") {
		name, optional := strings.CutSuffix(name, "?")
		slot, err := c.paths.add(name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, jsonLine{name, slot, optional})
	}
	return lines, nil
}

func (t template) has(kinds ...segmentKind) bool {
	for _, s := range t {
		for _, kind := range kinds {
			if s.kind == kind {
				return true
			}
		}
	}
	return false
}

// hasHeader reports whether the header is signed, or must be when the delivery says which are.
func (t template) hasHeader(name string) bool {
	for _, s := range t {
		if s.kind == segmentHeader && s.name == name || s.kind == segmentSignedHeaders {
			return true
		}
	}
	return false
}
