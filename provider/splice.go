package provider

import (
	"net/url"
	"strings"
)

// setJSON returns the body with text in the place of the scalar at the path with the slot; false if there is none.
func setJSON(p *paths, slot int, body []byte, text string) ([]byte, bool) {
	s := newScanner(body)
	defer s.free()
	if s.locate(p) != nil {
		return nil, false
	}
	at := s.spans[slot]
	if at.end == 0 {
		return nil, false
	}
	out := append([]byte(nil), body[:at.start]...)
	out = append(out, quote(text)...)
	return append(out, body[at.end:]...), true
}

// setField returns a form or query in which the field has the value, everything else as it was.
func setField(form, name, value string) string {
	var pairs []string
	for pair := range strings.SplitSeq(form, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(key); err == nil && plain == name || pair == "" {
			continue
		}
		pairs = append(pairs, pair)
	}
	return strings.Join(append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// setQuery sets a parameter in the query and in the URL.
func setQuery(d *Delivery, name, value string) {
	d.Query = setField(d.Query, name, value)
	if d.URL != "" {
		base, _, _ := strings.Cut(d.URL, "?")
		d.URL = base + "?" + d.Query
	}
}
