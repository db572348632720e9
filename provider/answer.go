package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// answer is an Answer made ready.
type answer struct {
	status int
	header map[string]answerTemplate // by canonical name
	body   answerTemplate
	json   bool
}

type answerTemplate []answerSegment

type answerSegment struct {
	text    string // without a source
	source  *source
	mac     bool
	keyName bool
}

// maxAnswerValue bounds a value in an answer, in bytes.
const maxAnswerValue = 4 << 10

func (c *Compiled) answer(h Handshake) (*answer, error) {
	from := h.Answer
	if from == nil {
		return nil, nil
	}
	out := &answer{status: from.Status, header: make(map[string]answerTemplate)}
	if out.status == 0 {
		out.status = http.StatusOK
	}
	if out.status < 200 || out.status > 299 {
		return nil, fmt.Errorf("status %d: allowed are 200 to 299", out.status)
	}
	var err error
	if out.body, err = c.answerTemplate(from.Body, h); err != nil {
		return nil, err
	}
	for name, value := range from.Header {
		canonical, err := headerName(name)
		if err != nil {
			return nil, err
		}
		if out.header[canonical], err = c.answerTemplate(value, h); err != nil {
			return nil, err
		}
	}
	out.json = strings.HasPrefix(from.Body, "{\"")
	if _, set := out.header["Content-Type"]; !set && from.Body != "" {
		contentType := "text/plain; charset=utf-8"
		if out.json {
			contentType = "application/json"
		}
		out.header["Content-Type"] = answerTemplate{{text: contentType}}
	}
	return out, nil
}

var errOracle = errors.New("{mac:…} in the answer to an unsigned handshake needs a condition with a pattern on the same source")

// answerTemplate parses a text with values in braces.
func (c *Compiled) answerTemplate(text string, h Handshake) (answerTemplate, error) {
	var t answerTemplate
	for text != "" {
		open := strings.IndexByte(text, '{')
		end := -1
		if open >= 0 {
			end = strings.IndexByte(text[open:], '}')
		}
		if end < 0 {
			return append(t, answerSegment{text: text}), nil
		}
		name := text[open+1 : open+end]
		seg, ok, err := c.answerSegment(name, h)
		if err != nil {
			return nil, fmt.Errorf("{%s}: %w", name, err)
		}
		if !ok {
			t = append(t, answerSegment{text: text[:open+1]})
			text = text[open+1:]
			continue
		}
		t = append(t, answerSegment{text: text[:open]}, seg)
		text = text[open+end+1:]
	}
	return t, nil
}

func (c *Compiled) answerSegment(name string, h Handshake) (seg answerSegment, ok bool, err error) {
	if name == "key_name" {
		return answerSegment{keyName: true}, true, nil
	}
	rest, mac := strings.CutPrefix(name, "mac:")
	from, argument, ok := strings.Cut(rest, ":")
	if !ok || !slices.Contains([]string{FromHeader, FromJSON, FromForm, FromQuery}, from) {
		return seg, false, nil
	}
	src := Source{From: from, Name: argument}
	if mac && !h.Signed && !slices.ContainsFunc(h.When, func(w Condition) bool {
		return w.Pattern != "" && w.Source.From == src.From && w.Source.Name == src.Name
	}) {
		return seg, false, errOracle
	}
	s, err := c.source(src)
	return answerSegment{source: &s, mac: mac}, err == nil, err
}

func (c *Compiled) write(d *Delivery, a *answer, keys []Key) (status int, header http.Header, body []byte, ok bool) {
	header = make(http.Header)
	for name, t := range a.header {
		value, ok := c.fillAnswer(d, t, keys, false)
		if !ok || strings.ContainsAny(value, "\r\n\x00") {
			return 0, nil, nil, false
		}
		header[name] = []string{value}
	}
	text, ok := c.fillAnswer(d, a.body, keys, a.json)
	if !ok {
		return 0, nil, nil, false
	}
	if text != "" {
		// What the request said comes back: it must not become a page.
		header["X-Content-Type-Options"] = []string{"nosniff"}
	}
	return a.status, header, []byte(text), true
}

func (c *Compiled) fillAnswer(d *Delivery, t answerTemplate, keys []Key, json bool) (string, bool) {
	var b strings.Builder
	for _, seg := range t {
		value := ""
		switch {
		case seg.keyName, seg.mac:
			s, k := c.macKey(keys)
			if k == nil {
				return "", false
			}
			if value = k.name; seg.mac {
				if value = c.value(d, seg.source); value != "" {
					m := k.macs.Get().(*mac)
					m.Reset()
					m.writeString(value)
					value = encode(s.encoding, m.Sum(nil))
					k.macs.Put(m)
				}
			}
		case seg.source != nil:
			value = c.value(d, seg.source)
		default:
			b.WriteString(seg.text)
			continue
		}
		if value == "" || len(value) > maxAnswerValue {
			return "", false
		}
		if json {
			quoted := quote(value)
			value = quoted[1 : len(quoted)-1]
		}
		b.WriteString(value)
	}
	return b.String(), true
}

// macKey is the first key for the first HMAC scheme.
func (c *Compiled) macKey(keys []Key) (*scheme, *key) {
	for i, s := range c.schemes {
		if s.algorithm.kind != kindHMAC {
			continue
		}
		for j := range keys {
			if k := keys[j].scheme(c, i); k != nil {
				return s, k
			}
		}
		break
	}
	return nil, nil
}
