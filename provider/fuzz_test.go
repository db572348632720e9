package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// FuzzSignatureHeader: no header verifies without the key, and none makes the parser fail other than by refusing.
func FuzzSignatureHeader(f *testing.F) {
	for _, s := range []string{"", "t=1790000000,v1=00", "t=,v1=,v1", "v1,AAAA v1a,BBBB", "sha256=00", strings.Repeat(",", 9000), "t=1=2,v1==", " v1 = x "} {
		f.Add(s, "1790000000", "m1")
	}
	type compiled struct {
		*provider.Compiled
		keys []provider.Key
	}
	var all []compiled
	for _, s := range provider.All() {
		c := compile(f, s)
		all = append(all, compiled{c, []provider.Key{key(f, c, secretOf(s.ID))}})
	}
	f.Fuzz(func(t *testing.T, signature, timestamp, id string) {
		for _, c := range all {
			for _, s := range c.Spec().Schemes {
				d := delivery("{}", s.Header, signature)
				if s.IDHeader != "" {
					d.Header.Set(s.IDHeader, id)
					d.Header.Set(s.Timestamp.Name, timestamp)
				}
				err := c.Verify(d, c.keys, now, -1)
				if !errors.Is(err, provider.ErrSignature) {
					t.Fatalf("%s: %v", c.Spec().ID, err)
				}
				if early := c.CheckHeaders(d.Header); early != nil && early != err {
					t.Fatalf("%s: headers %v, all %v", c.Spec().ID, early, err)
				}
			}
		}
	})
}

var fuzzPaths = []string{"id", "a.b", "a[0]", "a.1.id", "a.b.c.d", "0", "é.\uFFFD"}

// FuzzJSONPath compares with encoding/json, in which the last duplicate wins as well.
func FuzzJSONPath(f *testing.F) {
	for _, s := range []string{`{"id":"e1","id":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":[1,{"id":true}]}`, `[{"x":null}]`, `{"a":{"b":{"c":{"d":1e5}}}}`,
		"{\"\xc3\xa9\":{\"\xff\":\"\xff\"}}", `{"\u00e9":{"\ud800":"\ud800"}}`, `{"id":-0.0}`, `{"id":"e1"} x`, strings.Repeat("[", 10001), `{"a":]}`} {
		f.Add([]byte(s))
	}
	compiled := make([]*provider.Compiled, len(fuzzPaths))
	for i, path := range fuzzPaths {
		compiled[i] = compile(f, own(provider.FromJSONPaths(path)))
	}
	// All paths at once must give what each gives alone.
	together := provider.Spec{ID: "all", EventType: provider.FromJSONPaths("a"), Account: provider.FromJSONPaths(fuzzPaths[3])}
	for _, path := range fuzzPaths {
		together.Fallbacks = append(together.Fallbacks, []provider.Part{provider.FromJSONPaths(path)})
	}
	joined := compile(f, together)
	hash := compile(f, own(provider.Part{{From: "body", Except: []string{"a.b", "a[0]"}}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		var want any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		valid := dec.Decode(&want) == nil
		if valid {
			_, err := dec.Token()
			valid = err == io.EOF
		}
		first := ""
		for i, c := range compiled {
			d := provider.Delivery{Header: http.Header{}, Body: body}
			got := ""
			if id, err := c.Identify(&d); err == nil {
				got = id.Parts[0]
			}
			expected := ""
			if valid {
				expected = textAt(want, steps(fuzzPaths[i]))
			}
			if got != expected {
				t.Fatalf("%s: %q, want %q", fuzzPaths[i], got, expected)
			}
			if first == "" {
				first = got
			}
		}
		d := provider.Delivery{Header: http.Header{}, Body: body}
		id, err := joined.Identify(&d)
		if (err == nil) != (first != "") || err == nil && id.Parts[0] != first {
			t.Fatalf("together: %v %v, want %q", id, err, first)
		}
		if _, err := hash.Identify(&d); (err == nil) != valid {
			t.Fatalf("hash: %v, valid %v", err, valid)
		}
	})
}

func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", ""), ".")
}

func textAt(v any, path []string) string {
	if len(path) == 0 {
		switch v := v.(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		case bool:
			if v {
				return "true"
			}
			return "false"
		}
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		if child, ok := v[path[0]]; ok {
			return textAt(child, path[1:])
		}
	case []any:
		if i := strings.IndexByte("01", path[0][0]); len(path[0]) == 1 && i >= 0 && i < len(v) {
			return textAt(v[i], path[1:])
		}
	}
	return ""
}

// FuzzContent: whatever compiles signs and verifies.
func FuzzContent(f *testing.F) {
	for _, s := range []string{"{body}", "{timestamp}.{body}", "{id}.{timestamp}.{body}", "v0:{header:X-T}:{body}", "{", "}{", "{{body}}", "{http.request.uri}{body}{url}", "{header:}{body}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		s := own(provider.FromJSONPaths("id"))
		s.Schemes = []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig", Content: content}}
		c, err := provider.Compile(s)
		if err != nil {
			return
		}
		d := delivery(`{"id":"1"}`)
		d.URL = "https://a.example/"
		d.Placeholder = func(name string) (string, bool) { return name, true }
		if err := c.Sign(d, "k", now); err != nil {
			if !errors.Is(err, provider.ErrContentMissing) || !strings.Contains(content, "{header:") {
				t.Fatal(err)
			}
			return
		}
		err = c.Verify(d, []provider.Key{key(t, c, "k")}, now, 0)
		// A header in the content that is the signature's own can't be signed by itself.
		if err != nil && !strings.Contains(strings.ToLower(content), "{header:x-sig}") {
			t.Fatalf("%q: %v", content, err)
		}
		d.Body = append(slices.Clone(d.Body), ' ')
		if c.Verify(d, []provider.Key{key(t, c, "k")}, now, 0) == nil {
			t.Fatalf("%q: tampered body accepted", content)
		}
	})
}

// FuzzPath: a path that compiles either finds something in its own example or is refused.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"$.a.b", "a[0].b", "a.0.b", "$['a.b']", "$", "a..b", "[", "$id"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		s := own(provider.FromJSONPaths(path))
		c, err := provider.Compile(s)
		if err != nil || !utf8.ValidString(path) {
			return
		}
		d := s.Example("e1", now)
		if id, err := c.Identify(&d); err != nil || id.Parts[0] != "e1" {
			t.Fatalf("%q: %v %v in %s", path, id, err, d.Body)
		}
	})
}

// FuzzGzip: broken and huge compressed bodies are missing IDs, nothing worse.
func FuzzGzip(f *testing.F) {
	f.Add([]byte(compressed(f, `{"id":"evt_1"}`)))
	f.Add([]byte(compressed(f, `{"id":`, `"evt_1"}`)))
	f.Add([]byte{0x1f, 0x8b})
	c := compile(f, own(provider.FromJSONPaths("id")))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := delivery(string(body), "Content-Encoding", "gzip")
		d.MaxDecoded = 64
		id, err := c.Identify(d)
		if err == nil && len(id.Parts[0]) > 64 {
			t.Fatalf("more than the limit: %q", id.Parts)
		}
		d = delivery(string(body), "Content-Encoding", "gzip", "Content-Type", "application/x-www-form-urlencoded")
		_, _ = c.Identify(d)
	})
}
