package provider_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// FuzzBatch compares with encoding/json: the elements are the array's, each in its place, and Filter removes those that are not wanted and
// nothing else.
func FuzzBatch(f *testing.F) {
	for _, s := range []string{`[{"id":"a"},{"id":"b"}]`, `{"e":[1,2,3]}`, ` [ 1 , 2 ] ` + "\r\n", `{"e":[1],"e":[2,3]}`, `{"e":[{"m":[1,2]},{"m":[]},7,{"x":1}]}`, `{"e":[{"m":[1],"m":1}]}`,
		`[`, `[]`, `[1,]`, `{"e":null}`, strings.Repeat("[", 10001), "\uFEFF[]", `{"e":[{"m":{"m":[1]}}]}`, `[[],[1],{"a":[1]}]`} {
		f.Add([]byte(s), uint64(0xaaaa))
	}
	flat, nested := batch(f, "$.e"), batch(f, "$.e[*].m[*]")
	top := batch(f, "$")
	f.Fuzz(func(t *testing.T, body []byte, mask uint64) {
		for name, c := range map[string]*provider.Compiled{"flat": flat, "nested": nested, "top": top} {
			want, ok := elementsOf(name, body)
			d := delivery(string(body))
			elements, err := c.Elements(d)
			if (err == nil) != ok {
				t.Fatalf("%s: %v, want %v", name, err, ok)
			}
			if err != nil {
				if _, err := c.Filter(d, func(int) bool { return false }); err == nil {
					t.Fatal("filtered what is none")
				}
				continue
			}
			var got []any
			for _, e := range elements {
				got = append(got, valueOf(t, body[e.Start:e.End]))
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
			keep := func(i int) bool { return mask>>(i%64)&1 == 1 }
			kept, err := c.Filter(d, keep)
			if err != nil {
				t.Fatal(err)
			}
			var wanted [][]byte
			for i, e := range elements {
				if keep(i) {
					wanted = append(wanted, body[e.Start:e.End])
				}
			}
			again, err := c.Elements(delivery(string(kept)))
			if err != nil {
				t.Fatalf("%s: %q of %q: %v", name, kept, body, err)
			}
			// An item whose last element went is an element itself now.
			var left [][]byte
			for _, e := range again {
				left = append(left, kept[e.Start:e.End])
			}
			if name != "nested" && !slices.EqualFunc(left, wanted, bytes.Equal) || name == "nested" && !containsAll(left, wanted) {
				t.Fatalf("%s: %q of %q", name, kept, body)
			}
		}
	})
}

// containsAll reports whether all has the wanted in their order.
func containsAll(all, wanted [][]byte) bool {
	for _, a := range all {
		if len(wanted) > 0 && bytes.Equal(a, wanted[0]) {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

func valueOf(t *testing.T, raw []byte) any {
	v, ok := decodeJSON(raw)
	if !ok {
		t.Fatalf("element %q is no JSON", raw)
	}
	return v
}

func decodeJSON(raw []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, err == io.EOF
}

// elementsOf is what encoding/json makes of the batch.
func elementsOf(name string, body []byte) (all []any, ok bool) {
	v, ok := decodeJSON(body)
	if !ok {
		return nil, false
	}
	if name != "top" {
		object, _ := v.(map[string]any)
		v = object["e"]
	}
	items, ok := v.([]any)
	if name != "nested" {
		return append(all, items...), ok
	}
	for _, item := range items {
		object, _ := item.(map[string]any)
		if inner, _ := object["m"].([]any); len(inner) > 0 {
			all = append(all, inner...)
		} else {
			all = append(all, item)
		}
	}
	return all, ok
}

// FuzzSortedForm compares with net/url.
func FuzzSortedForm(f *testing.F) {
	for _, s := range []string{"a=1&b=2", "b=2&a=1&b=1&b=2", "a", "=", "&&", "a=%zz", "a=+%2B&%61=2", "a;b=1", "\xff=\xfe", "A=&B=%00"} {
		f.Add(s)
	}
	c := scheme(f, urlSchemes()...)
	keys := []provider.Key{key(f, c, "k")}
	f.Fuzz(func(t *testing.T, form string) {
		d := delivery(form, "Content-Type", formType)
		d.URL = "https://a.example/"
		err := c.Sign(d, "k", now)
		want := "https://a.example/"
		bad := false
		values := map[string][]string{}
		for pair := range strings.SplitSeq(form, "&") {
			if pair == "" {
				continue
			}
			name, value, _ := strings.Cut(pair, "=")
			n, err1 := url.QueryUnescape(name)
			v, err2 := url.QueryUnescape(value)
			bad = bad || err1 != nil || err2 != nil
			values[n] = append(values[n], v)
		}
		var names []string
		for name := range values {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			all := values[name]
			slices.Sort(all)
			for _, v := range slices.Compact(all) {
				want += name + v
			}
		}
		if bad {
			if !errors.Is(err, provider.ErrContentMalformed) {
				t.Fatal(err)
			}
			return
		}
		if err != nil {
			if errors.Is(err, provider.ErrContentMalformed) && strings.Count(form, "&") >= 10000 {
				return
			}
			t.Fatal(err)
		}
		if got := d.Header.Get("X-Sig"); got != b64(sum(sha1.New, "k", want)) {
			t.Fatalf("%q: another content than %q", form, want)
		}
		if err := c.Verify(d, keys, now, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzURL: whatever the URL, what is signed verifies, with or without its port, and another path doesn't.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://a.example/b?c=d", "http://a.example:80", "https://[::1]:443/?x", "https://[::1]/", "://", "https://a:1:2/", "x", "https://u:p@a.example", "https://a.example?x=%3a%"} {
		f.Add(s, "https://a.example")
	}
	ports := scheme(f, urlSchemes()...)
	base := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Extended: true}
	decoded, path, encoded := base, base, base
	decoded.Content, path.Content, encoded.Content = "{url_decoded::/?@!$'()*,;}{body}", "{path}{body}", "{path_encoded}{body}"
	all := []*provider.Compiled{ports, scheme(f, decoded), scheme(f, path), scheme(f, encoded)}
	f.Fuzz(func(t *testing.T, address, list string) {
		for _, c := range all {
			d := delivery("", "Content-Type", formType)
			d.URL = address
			_, d.Query, _ = strings.Cut(address, "?")
			if err := c.Sign(d, "k", now); err != nil {
				if !errors.Is(err, provider.ErrContentMissing) {
					t.Fatal(err)
				}
				continue
			}
			keys := []provider.Key{key(t, c, "k")}
			if err := c.Verify(d, keys, now, 0); err != nil {
				t.Fatal(address, err)
			}
			if d.URL = "https://b.example/other"; address != d.URL && c != all[2] && c != all[3] && c.Verify(d, keys, now, 0) == nil && !strings.HasPrefix(address, "https://b.example") {
				t.Fatal(address, "accepted for another URL")
			}
		}
	})
}

// FuzzSignedHeaders: a list is either refused or signs what it lists.
func FuzzSignedHeaders(f *testing.F) {
	for _, s := range []string{"x-list,x-time", "x-time, X-List ,a", "x-list", "x-list,x-time,x-time", ",", "x-list,x-time,é", "x-list,x-time,host"} {
		f.Add(s, "v")
	}
	c := scheme(f, provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{signed_headers:X-List}\n{body}", Extended: true,
		Timestamp: &provider.Timestamp{From: "header", Name: "X-Time"}})
	keys := []provider.Key{key(f, c, "k")}
	f.Fuzz(func(t *testing.T, list, value string) {
		d := delivery("{}", "X-List", list, "A", value, "X-Sig", "x")
		if err := c.Sign(d, "k", now); err != nil {
			if !errors.Is(err, provider.ErrContentMalformed) && !errors.Is(err, provider.ErrContentMissing) {
				t.Fatal(err)
			}
			return
		}
		// The signature's own header can't be signed by itself.
		if err := c.Verify(d, keys, now, 0); err != nil && !strings.Contains(strings.ToLower(list), "x-sig") {
			t.Fatalf("%q: %v", list, err)
		}
		d.Header.Set("X-Time", "1790000001")
		if c.Verify(d, keys, now, -1) == nil {
			t.Fatalf("%q: the timestamp is not signed", list)
		}
	})
}

// FuzzBodySignature: no body verifies without the key, and whatever can be signed verifies.
func FuzzBodySignature(f *testing.F) {
	for _, s := range []string{`{"t":"1790000000","s":"00","k":"x"}`, `{"t":1,"s":null}`, `{"s":{}}`, "t=1790000000&k=x&s=", "s=a%7C00%26b|01", `{"i":[{"s":"x","v":1},{"s":""}]}`, `{"i":[1]}`, `[`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	at := func(from string) *provider.Timestamp { return &provider.Timestamp{From: from, Name: "t"} }
	base := provider.Scheme{Algorithm: "hmac-sha256", Extended: true, BodyUnsigned: true}
	inJSON, inForm, list, each := base, base, base, base
	inJSON.Signature, inJSON.Timestamp, inJSON.Content = &provider.Source{From: "json", Name: "s"}, at("json"), "{timestamp}{json?:k}"
	inForm.Signature, inForm.Timestamp, inForm.Content = &provider.Source{From: "form", Name: "s"}, at("form"), "{timestamp}{form?:k}"
	list.Signature, list.Content, list.List = &provider.Source{From: "form", Name: "s"}, "{form:k}", &provider.List{Separator: "&", Assign: "|", Names: []string{"*"}}
	each.Signature, each.Content, each.Each = &provider.Source{From: "json", Name: "s"}, "{json?:v}:{json_lines:v?,w?}", "i"
	var all []*provider.Compiled
	for _, s := range []provider.Scheme{inJSON, inForm, list, each} {
		all = append(all, scheme(f, s))
	}
	f.Fuzz(func(t *testing.T, body []byte, form bool) {
		for i, c := range all {
			d := delivery(string(body))
			if form {
				d.Header.Set("Content-Type", formType)
			}
			keys := []provider.Key{key(t, c, "a key nobody guesses")}
			if err := c.Verify(d, keys, now, -1); !errors.Is(err, provider.ErrSignature) {
				t.Fatalf("%d: %v", i, err)
			}
			if c.Sign(d, "a key nobody guesses", now) != nil {
				continue
			}
			// A batch without elements has no signature; a timestamp may be nonsense.
			if err := c.Verify(d, keys, now, -1); err != nil && !errors.Is(err, provider.ErrTimestampMalformed) &&
				!(i == 3 && errors.Is(err, provider.ErrSignatureMissing)) && !errors.Is(err, provider.ErrSignatureMissing) {
				t.Fatalf("%d: %q signed as %q: %v", i, body, d.Body, err)
			}
		}
	})
}

// FuzzJWT: no token verifies without the key.
func FuzzJWT(f *testing.F) {
	c := scheme(f, provider.Scheme{Algorithm: "jwt-es256", Header: "X-Token", BodyHash: &provider.Source{From: "claim", Name: "h"}, Timestamp: &provider.Timestamp{From: "claim", Name: "iat"}})
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	d := delivery("{}")
	if err := c.Sign(d, b64(pkcs8(f, private)), now); err != nil {
		f.Fatal(err)
	}
	good := d.Header.Get("X-Token")
	for _, s := range []string{good, good[1:], good[:len(good)-2], "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "{}", strings.Repeat(".", 9000)} {
		f.Add(s, `{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`)
	}
	f.Fuzz(func(t *testing.T, token, jwk string) {
		d := delivery("{}", "X-Token", token)
		d.JWKs = keySource{"": "", "k": `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`}
		if err := c.Verify(d, nil, now, -1); !errors.Is(err, provider.ErrSignature) {
			t.Fatal(err)
		}
		if _, err := c.Key(jwk); err != nil && len(jwk) > 30 && strings.Contains(err.Error(), jwk) {
			t.Fatal("the error has the key")
		}
	})
}

// FuzzCertificates: whatever is at a certificate's URL is parsed or refused, and nothing is trusted that leads to no root.
func FuzzCertificates(f *testing.F) {
	ca := newAuthority(f)
	f.Add(pemOf("CERTIFICATE", ca.cert.Raw))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("<html>"))
	c := scheme(f, transmission)
	keys := []provider.Key{key(f, c, "W")}
	other := newAuthority(f)
	f.Fuzz(func(t *testing.T, chain []byte) {
		parsed, err := provider.ParseCertificates(chain, other.pool)
		if err != nil {
			return
		}
		d := delivery("{}", "X-Sig", b64(make([]byte, 256)), "X-Id", "i", "X-Time", "t", "X-Algo", "SHA256withRSA", "X-Cert", "https://pay.example/c")
		d.Certificates = certificates{"https://pay.example/c": parsed}
		if err := c.Verify(d, keys, now, 0); !errors.Is(err, provider.ErrCertificate) {
			t.Fatal(err)
		}
	})
}

// FuzzSpecTexts: contents, batch paths and answers compile or are refused; what compiles does its work without a panic.
func FuzzSpecTexts(f *testing.F) {
	for _, s := range []string{"{method}{path}{body}", "{json?:a.b}{crc32}", "{json_lines:a,b?}{body}", "{signed_headers:A}{body}", "{url_decoded:}{body}", "{mac:json:a}", `{"a":"{json:a}"}`, "$.a[*].b", "$[*][*]", "{", "{mac:", "{?:}{body}"} {
		f.Add(s, []byte(`{"a":[{"b":[1]}]}`))
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		d := delivery(string(body))
		d.URL = "https://a.example/x?y"
		if c, err := provider.Compile(provider.Spec{ID: "a", Schemes: []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig", Content: text, Extended: true}}}); err == nil {
			if c.Sign(d, "k", now) == nil && !strings.Contains(strings.ToLower(text), "x-sig") {
				if err := c.Verify(d, []provider.Key{key(t, c, "k")}, now, 0); err != nil {
					t.Fatalf("%q: %v", text, err)
				}
			}
		}
		if c, err := provider.Compile(provider.Spec{ID: "a", Batch: &provider.Batch{Paths: []string{text}, EventID: []provider.Part{provider.FromJSONPaths("id")}}}); err == nil {
			if elements, err := c.Elements(d); err == nil {
				for _, e := range elements {
					valueOf(t, body[e.Start:e.End])
				}
			}
		}
		h := provider.Handshake{Name: "h", EmptyBody: false, Body: "(?s).*", Answer: &provider.Answer{Body: text, Header: map[string]string{"X-A": text}}}
		if c, err := provider.Compile(provider.Spec{ID: "a", Handshakes: []provider.Handshake{h}}); err == nil {
			_, header, answer, ok := c.AnswerHandshake(d, nil)
			if ok && strings.ContainsAny(header.Get("X-A"), "\r\n") {
				t.Fatalf("header %q", header)
			}
			if ok && strings.HasPrefix(text, `{"`) && json.Valid([]byte(strings.ReplaceAll(text, "{json:a}", "x"))) && !json.Valid(answer) && !strings.Contains(text, "{") {
				t.Fatalf("%q: %q", text, answer)
			}
		}
	})
}
