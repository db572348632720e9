package provider_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func own(parts ...provider.Part) provider.Spec {
	return provider.Spec{ID: "acme", Own: true, EventID: parts}
}

func header(from, name string) provider.Part { return provider.Part{{From: from, Name: name}} }

// idOf identifies d by one part, empty if it is missing.
func idOf(t testing.TB, p provider.Part, d *provider.Delivery) string {
	t.Helper()
	id, err := compile(t, own(p)).Identify(d)
	if err != nil {
		if !errors.Is(err, provider.ErrMissingID) || id.Parts != nil {
			t.Fatal(id, err)
		}
		return ""
	}
	return id.Parts[0]
}

func TestJSONPaths(t *testing.T) {
	deep := strings.Repeat("[", 100000) + strings.Repeat("]", 100000)
	for _, tt := range []struct{ name, path, body, want string }{
		{"member", "$.id", `{"id":"e1"}`, "e1"},
		{"without dollar", "id", ` { "a" : [1, {"id":2}] , "id" : "e1" } ` + "\r\n", "e1"},
		{"nested", "$.a.b.c", `{"a":{"b":{"c":"x"}}}`, "x"},
		{"index in brackets", "a[1].b", `{"a":[{"b":1},{"b":2}]}`, "2"},
		{"index with a dot", "a.1.b", `{"a":[{"b":1},{"b":2}]}`, "2"},
		{"number as a name", "a.1.b", `{"a":{"1":{"b":2}}}`, "2"},
		{"top-level array", "$[0].id", `[{"id":"e1"},{"id":"e2"}]`, "e1"},
		{"bracketed name", "$['a.b'].c", `{"a.b":{"c":"x"}}`, "x"},
		{"name with a dash", "$.event-data.id", `{"event-data":{"id":"x"}}`, "x"},
		{"dollar in a name", "$id", `{"$id":"x"}`, "x"},
		{"escaped name", "id", `{"\u0069d":"x"}`, "x"},
		{"non-ASCII name", "é", `{"\u00e9":"x"}`, "x"},
		{"escaped value", "id", `{"id":"\ud83d\ude00\n\"é"}`, "\U0001F600\n\"é"},
		{"broken UTF-8", "id", "{\"id\":\"a\xffb\"}", "a\uFFFDb"},
		{"half a surrogate pair", "id", `{"id":"\ud83d"}`, "\uFFFD"},
		{"integer beyond float64", "id", `{"id":820982911946154508}`, "820982911946154508"},
		{"literal is kept", "id", `{"id":1.50e+3}`, "1.50e+3"},
		{"true", "id", `{"id":true}`, "true"},
		{"false", "id", `{"id":false}`, "false"},
		{"null", "id", `{"id":null}`, ""},
		{"object", "id", `{"id":{}}`, ""},
		{"array", "id", `{"id":["e1"]}`, ""},
		{"empty string", "id", `{"id":""}`, ""},
		{"absent", "id", `{"ID":"e1"}`, ""},
		{"index out of range", "a[2]", `{"a":[1,2]}`, ""},
		{"last duplicate", "id", `{"id":"e1","id":"e2"}`, "e2"},
		{"last duplicate is null", "id", `{"id":"e1","id":null}`, ""},
		{"last duplicate is an object", "id", `{"id":"e1","id":{"x":1}}`, ""},
		{"last duplicate on the way", "a.id", `{"a":{"id":"e1"},"a":{}}`, ""},
		{"last duplicate on the way, a string", "a.id", `{"a":{"id":"e1"},"a":"e2"}`, ""},
		{"last duplicate on the way, escaped", "a.id", `{"a":{"id":"e1"},"\u0061":{"id":"e2"}}`, "e2"},
		{"no JSON", "id", `id=e1`, ""},
		{"empty body", "id", ``, ""},
		{"cut off", "id", `{"id":"e1"`, ""},
		{"data behind", "id", `{"id":"e1"}{}`, ""},
		{"invalid elsewhere", "id", `{"id":"e1","x":01}`, ""},
		{"invalid deep inside", "id", `{"id":"e1","x":[[{"y":tru}]]}`, ""},
		{"mismatched brackets", "a.b", `{"a":{"b":1]}`, ""},
		{"name is no string", "a", `{1:2}`, ""},
		{"trailing comma", "id", `{"id":"e1",}`, ""},
		{"byte order mark", "id", "\uFEFF" + `{"id":"e1"}`, ""},
		{"raw control character", "id", "{\"id\":\"a\nb\"}", ""},
		{"scalar body", "id", `"e1"`, ""},
		{"100,000 levels", "id", `{"id":"e1","x":` + deep + `}`, ""},
		{"100,000 levels on the way", "x[0][0].id", `{"x":` + deep + `}`, ""},
		{"9,000 levels", "id", `{"x":` + deep[:9000] + deep[len(deep)-9000:] + `,"id":"e1"}`, "e1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := idOf(t, provider.FromJSONPaths(tt.path), delivery(tt.body)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestSources(t *testing.T) {
	form := []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}
	for _, tt := range []struct {
		name    string
		part    provider.Part
		query   string
		body    string
		headers []string
		want    string
	}{
		{"header", header("header", "x-acme-id"), "", "", []string{"X-Acme-Id", "e1"}, "e1"},
		{"header, empty", header("header", "X-Acme-Id"), "", "", []string{"X-Acme-Id", " "}, ""},
		{"header, twice the same", header("header", "X-Acme-Id"), "", "", []string{"X-Acme-Id", "e1", "X-Acme-Id", "e1"}, "e1"},
		{"header, two values", header("header", "X-Acme-Id"), "", "", []string{"X-Acme-Id", "e1", "X-Acme-Id", "e2"}, ""},
		{"form", header("form", "id"), "", "a=b&id=e%201+x&c", form, "e 1 x"},
		{"form, last wins", header("form", "id"), "", "id=e1&%69d=e2", form, "e2"},
		{"form, last is empty", header("form", "id"), "", "id=e1&id=", form, ""},
		{"form, broken escape", header("form", "id"), "", "id=e1&id=%zz&%zz=1", form, "e1"},
		{"form without its content type", header("form", "id"), "", "id=e1", nil, ""},
		{"query", header("query", "id"), "a=1&id=e1", "", nil, "e1"},
		{"query, last wins", header("query", "id"), "id=e1&id=e2", "", nil, "e2"},
		{"query, absent", header("query", "id"), "idx=1", "", nil, ""},
		{"alternatives", provider.Part{{From: "header", Name: "X-A"}, {From: "json", Name: "id"}, {From: "query", Name: "id"}}, "id=q", `{"id":""}`, nil, "q"},
		{"body", header("body", ""), "", "abc", nil, "sha256-ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"body, empty", header("body", ""), "", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(tt.body, tt.headers...)
			d.Query = tt.query
			if got := idOf(t, tt.part, d); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestBodyExcept(t *testing.T) {
	part := provider.Part{{From: "body", Except: []string{"attempt", "meta.sent_at", "items[0].n"}}}
	of := func(body string) string { return idOf(t, part, delivery(body)) }
	first := of(`{"id":1,"attempt":1,"meta":{"sent_at":1,"a":[1,"x"]},"items":[{"n":1},{"n":2}]}`)
	if len(first) != len("sha256-")+64 {
		t.Fatalf("%q", first)
	}
	for name, tt := range map[string]struct {
		body string
		same bool
	}{
		"excluded members differ":  {`{"id":1,"attempt":2,"meta":{"sent_at":{"x":[]},"a":[1,"x"]},"items":[{"n":7},{"n":2}]}`, true},
		"excluded members absent":  {`{"id":1,"meta":{"a":[1,"x"]},"items":[{},{"n":2}]}`, true},
		"excluded member twice":    {`{"id":1,"attempt":2,"attempt":3,"meta":{"a":[1,"x"]},"items":[{},{"n":2}]}`, true},
		"white space and escapes":  {"{\n \"id\" : 1, \"meta\":{\"\\u0061\":[ 1,\"\\u0078\" ]},\"items\":[{ },{\"n\":2}]}\r\n", true},
		"another value":            {`{"id":2,"attempt":1,"meta":{"a":[1,"x"]},"items":[{},{"n":2}]}`, false},
		"another index":            {`{"id":1,"meta":{"a":[1,"x"]},"items":[{},{"n":3}]}`, false},
		"string for number":        {`{"id":"1","meta":{"a":[1,"x"]},"items":[{},{"n":2}]}`, false},
		"tokens regrouped":         {`{"id":1,"meta":{"a":[1],"x":[]},"items":[{},{"n":2}]}`, false},
		"excluded name elsewhere":  {`{"id":1,"meta":{"a":[1,"x"],"attempt":1},"items":[{},{"n":2}]}`, false},
		"same name at another way": {`{"id":1,"meta":{"a":[1,"x"]},"sent_at":1,"items":[{},{"n":2}]}`, false},
	} {
		if got := of(tt.body); got == "" || (got == first) != tt.same {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, body := range map[string]string{"no JSON": "a=b", "cut off": `{"id":1`, "data behind": `{} 1`, "empty": ""} {
		if got := of(body); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if of(strings.Repeat("[", 100000)+strings.Repeat("]", 100000)) != "" {
		t.Error("too deep")
	}
}

func TestIdentities(t *testing.T) {
	for _, tt := range []struct {
		name, provider string
		headers        []string
		body, want     string
	}{
		{"stripe", "stripe", nil, `{"id":"evt_1","data":{"object":{"id":"ch_1"}}}`, "evt_1"},
		{"stripe without ID", "stripe", nil, `{"data":{"object":{"id":"ch_1"}}}`, ""},
		{"github", "github", []string{"X-GitHub-Hook-ID", "7", "X-GitHub-Delivery", "g"}, "{}", "7|g"},
		{"github GUID alone", "github", []string{"X-GitHub-Delivery", "g"}, "{}", "g"},
		{"github hook alone", "github", []string{"X-GitHub-Hook-ID", "7"}, "{}", ""},
		{"github empty GUID", "github", []string{"X-GitHub-Hook-ID", "7", "X-GitHub-Delivery", ""}, "{}", ""},
		{"shopify Webhooks", "shopify", []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/create", "X-Shopify-Event-Id", "e", "X-Shopify-Webhook-Id", "w"}, "{}", "s|orders/create|e"},
		{"shopify without event ID", "shopify", []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/create", "X-Shopify-Webhook-Id", "w"}, "{}", "w"},
		{"shopify Events", "shopify", []string{"Shopify-Webhook-Id", "w", "Shopify-Topic", "Product"}, "{}", "w"},
		{"shopify without any", "shopify", []string{"X-Shopify-Topic", "orders/create"}, "{}", ""},
		{"svix", "svix", []string{"Svix-Id", "m"}, "{}", "m"},
		{"svix, unbranded", "svix", []string{"Webhook-Id", "m"}, "{}", "m"},
		{"standard-webhooks", "standard-webhooks", []string{"Webhook-Id", "m"}, "{}", "m"},
		{"standard-webhooks does not read svix-id", "standard-webhooks", []string{"Svix-Id", "m"}, "{}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, err := compile(t, lookup(t, tt.provider)).Identify(delivery(tt.body, tt.headers...))
			if got := strings.Join(id.Parts, "|"); got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestReplacedSignature: entries compile and identify without their schemes, and with a user's, as they do with their own.
func TestReplacedSignature(t *testing.T) {
	for _, schemes := range [][]provider.Scheme{nil, {{Algorithm: "token", Header: "X-Token"}}} {
		for _, s := range provider.All() {
			d := s.Example("e1", now)
			want := identity(t, compile(t, s), &d)
			s.Schemes = schemes
			if got := identity(t, compile(t, s), &d); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", s.ID, got, want)
			}
		}
	}
}

func TestTypeAndAccount(t *testing.T) {
	c := compile(t, lookup(t, "stripe"))
	id, err := c.Identify(delivery(`{"type":"a.b","account":"acct_1"}`))
	if !errors.Is(err, provider.ErrMissingID) || id.Type != "a.b" || id.Account != "acct_1" {
		t.Error(id, err)
	}
	if id, _ := c.Identify(delivery(`{"type":"a.b","context":"acct_2"}`)); id.Account != "acct_2" {
		t.Error(id)
	}
}

func compressed(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestContentEncoding(t *testing.T) {
	c := compile(t, lookup(t, "stripe"))
	keys := []provider.Key{key(t, c, "k")}
	whole := compressed(t, `{"id":"evt_1"}`)
	bomb := compressed(t, `{"id":"evt_1","x":"`+strings.Repeat("x", 20<<20)+`"}`)
	for _, tt := range []struct {
		name, body string
		encodings  []string
		limit      int64
		want       string
	}{
		{"gzip", whole, []string{"gzip"}, 0, "evt_1"},
		{"x-gzip, upper case", whole, []string{"X-GZIP"}, 0, "evt_1"},
		{"several members", compressed(t, `{"id":`, `"evt_1"}`), []string{"gzip"}, 0, "evt_1"},
		{"at the limit", whole, []string{"gzip"}, 14, "evt_1"},
		{"over the limit", whole, []string{"gzip"}, 13, ""},
		{"bomb", bomb, []string{"gzip"}, 0, ""},
		{"bomb, bounded by the caller", bomb, []string{"gzip"}, 1000, ""},
		{"cut off", whole[:len(whole)-3], []string{"gzip"}, 0, ""},
		{"wrong checksum", whole[:len(whole)-8] + "\x00\x00\x00\x00" + whole[len(whole)-4:], []string{"gzip"}, 0, ""},
		{"data behind", whole + "x", []string{"gzip"}, 0, ""},
		{"not compressed", `{"id":"evt_1"}`, []string{"gzip"}, 0, ""},
		{"empty", "", []string{"gzip"}, 0, ""},
		{"not announced", whole, nil, 0, ""},
		{"identity", `{"id":"evt_1"}`, []string{"identity"}, 0, "evt_1"},
		{"unknown", `{"id":"evt_1"}`, []string{"br"}, 0, ""},
		{"twice", whole, []string{"gzip", "gzip"}, 0, ""},
		{"list", whole, []string{"gzip, gzip"}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(tt.body)
			d.MaxDecoded = tt.limit
			if tt.encodings != nil {
				d.Header["Content-Encoding"] = tt.encodings
			}
			if err := c.Sign(d, "k", now); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(d, keys, now, 0); err != nil {
				t.Error("the raw bytes are what is signed:", err)
			}
			id, _ := c.Identify(d)
			if got := strings.Join(id.Parts, "|"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestBodyHash(t *testing.T) {
	c := compile(t, lookup(t, "stripe"))
	sum := sha256.Sum256([]byte("x"))
	if got := c.BodyHash(delivery("x")); got != "sha256-"+hex.EncodeToString(sum[:]) {
		t.Error(got)
	}
	if got := c.BodyHash(delivery("")); got != "" {
		t.Error(got)
	}
}

func TestDeliveryIsReadAnew(t *testing.T) {
	a, b := compile(t, lookup(t, "stripe")), compile(t, own(provider.FromJSONPaths("other")))
	d := delivery(`{"id":"evt_1","other":"o1"}`)
	check := func(c *provider.Compiled, want string) {
		t.Helper()
		if id, err := c.Identify(d); err != nil || id.Parts[0] != want {
			t.Errorf("%v %v, want %s", id, err, want)
		}
	}
	check(a, "evt_1")
	check(b, "o1")
	check(a, "evt_1")
	d.Body = []byte(`{"id":"evt_2","other":"o2"}`)
	check(a, "evt_2")
	d.Body = []byte(`{"id":"evt_33"}`)
	check(a, "evt_33")
}

func TestHandshakes(t *testing.T) {
	s := provider.Spec{ID: "h", Handshakes: []provider.Handshake{
		{Name: "challenge", Signed: true, When: []provider.Condition{{Source: provider.Source{From: "json", Name: "type"}, Equals: []string{"url_verification"}}}},
		{Name: "ping", Body: `webhook_id=\d+`},
		{Name: "secret", EmptyBody: true, When: []provider.Condition{{Source: provider.Source{From: "header", Name: "X-Hook-Secret"}}}},
		{Name: "get", Method: "GET", EmptyBody: true, When: []provider.Condition{{Source: provider.Source{From: "query", Name: "challenge"}}}},
	}}
	c := compile(t, s)
	for _, tt := range []struct {
		name, method, query, body string
		headers                   []string
		want                      string
		signed                    bool
	}{
		{"signed", "POST", "", `{"type":"url_verification"}`, nil, "challenge", true},
		{"other type", "POST", "", `{"type":"event"}`, nil, "", false},
		{"body", "POST", "", "webhook_id=12", nil, "ping", false},
		{"body with more behind", "POST", "", "webhook_id=12&x=1", nil, "", false},
		{"body with a line behind", "POST", "", "webhook_id=12\n", nil, "", false},
		{"empty body and header", "POST", "", "", []string{"X-Hook-Secret", "s"}, "secret", false},
		{"body and header", "POST", "", "{}", []string{"X-Hook-Secret", "s"}, "", false},
		{"empty body", "POST", "", "", nil, "", false},
		{"GET", "GET", "challenge=x", "", nil, "get", false},
		{"POST for GET", "POST", "challenge=x", "", nil, "", false},
	} {
		d := delivery(tt.body, tt.headers...)
		d.Method, d.Query = tt.method, tt.query
		name, signed, ok := c.Handshake(d)
		if name != tt.want || signed != tt.signed || ok != (tt.want != "") {
			t.Errorf("%s: %q %v %v", tt.name, name, signed, ok)
		}
	}
}

func TestOwnExamples(t *testing.T) {
	hmac := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig"}
	withTime := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Timestamp: &provider.Timestamp{From: "json", Name: "sent.at"}}
	withID := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", IDHeader: "X-Id", Content: "{id}{body}"}
	for name, s := range map[string]provider.Spec{
		"header":       {EventID: []provider.Part{header("header", "X-Id")}, Schemes: []provider.Scheme{hmac}},
		"json":         {EventID: []provider.Part{header("json", "a[0].b")}, Schemes: []provider.Scheme{withTime}},
		"several json": {EventID: []provider.Part{header("json", "a.x"), header("json", "a.y")}, Schemes: []provider.Scheme{hmac}},
		"form":         {EventID: []provider.Part{header("form", "id")}, Schemes: []provider.Scheme{hmac}},
		"query":        {EventID: []provider.Part{header("query", "id")}, Schemes: []provider.Scheme{hmac}},
		"signed id":    {EventID: []provider.Part{header("signed_id", "")}, Schemes: []provider.Scheme{withID}},
		"PUT":          {EventID: []provider.Part{header("header", "X-Id")}, Schemes: []provider.Scheme{hmac}, Methods: []string{"PUT"}},
	} {
		s.ID, s.Own = "acme", true
		c := compile(t, s)
		d := s.Example(`e "1" é`, now)
		if err := c.Sign(&d, "k", now); err != nil {
			t.Fatal(name, err)
		}
		if err := c.Verify(&d, []provider.Key{key(t, c, "k")}, now, 0); err != nil {
			t.Error(name, err)
		}
		if id, err := c.Identify(&d); err != nil || id.Parts[len(id.Parts)-1] != `e "1" é` || !c.IsDelivery(d.Method) {
			t.Error(name, id, err)
		}
	}
	// Where the identity is the body's, another ID is another identity.
	s := own(provider.Part{{From: "body"}})
	a, b := s.Example("1", now), s.Example("2", now)
	if idOf(t, s.EventID[0], &a) == idOf(t, s.EventID[0], &b) {
		t.Error("one identity for two IDs")
	}
}

func TestCompileErrors(t *testing.T) {
	valid := func() provider.Spec {
		return provider.Spec{ID: "acme", Own: true, EventID: []provider.Part{header("header", "X-Id")},
			Schemes: []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig"}}}
	}
	if _, err := provider.Compile(valid()); err != nil {
		t.Fatal(err)
	}
	scheme := func(f func(*provider.Scheme)) func(*provider.Spec) {
		return func(s *provider.Spec) { f(&s.Schemes[0]) }
	}
	list := &provider.List{Separator: ",", Assign: "=", Names: []string{"v1"}}
	at := func(from, name, format string) *provider.Timestamp {
		return &provider.Timestamp{From: from, Name: name, Format: format}
	}
	for _, tt := range []struct {
		name, want string
		spoil      func(*provider.Spec)
	}{
		{"no ID", "lower case", func(s *provider.Spec) { s.ID = "" }},
		{"colon in the ID", "lower case", func(s *provider.Spec) { s.ID = "a:b" }},
		{"own without event ID", "own provider", func(s *provider.Spec) { s.EventID = nil }},
		{"method", "GET, HEAD", func(s *provider.Spec) { s.Methods = []string{"BREW"} }},
		{"negative TTL", "negative", func(s *provider.Spec) { s.TTL = -time.Second }},
		{"in-flight status", "300 to 599", func(s *provider.Spec) { s.InFlightStatus = 200 }},
		{"empty part", "no source", func(s *provider.Spec) { s.EventID = []provider.Part{{}} }},
		{"empty fallback", "fallback 1", func(s *provider.Spec) { s.Fallbacks = [][]provider.Part{{}} }},
		{"source", "header, json, form", func(s *provider.Spec) { s.EventID[0][0].From = "cookie" }},
		{"header source without name", "empty", func(s *provider.Spec) { s.EventID[0][0].Name = "" }},
		{"header source with a space", "not a header name", func(s *provider.Spec) { s.EventID[0][0].Name = "X Id" }},
		{"query without name", "empty", func(s *provider.Spec) { s.EventID[0] = header("query", "") }},
		{"body with name", "no name", func(s *provider.Spec) { s.EventID[0] = header("body", "x") }},
		{"except for header", "body only", func(s *provider.Spec) { s.EventID[0][0].Except = []string{"a"} }},
		{"except path", "json path", func(s *provider.Spec) { s.EventID[0] = provider.Part{{From: "body", Except: []string{"a..b"}}} }},
		{"signed_id without id_header", "id_header", func(s *provider.Spec) { s.EventID[0] = header("signed_id", "") }},
		{"event type", "event type", func(s *provider.Spec) { s.EventType = header("x", "") }},
		{"account", "account", func(s *provider.Spec) { s.Account = header("x", "") }},
		{"algorithm", "hmac-sha256, hmac-sha512", scheme(func(s *provider.Scheme) { s.Algorithm = "md5" })},
		{"no header", "header", scheme(func(s *provider.Scheme) { s.Header = "" })},
		{"header name", "not a header name", scheme(func(s *provider.Scheme) { s.Header = "X:Sig" })},
		{"id_header", "id_header", scheme(func(s *provider.Scheme) { s.IDHeader = "é" })},
		{"unsigned id_header", "{id}", scheme(func(s *provider.Scheme) { s.IDHeader = "X-Id" })},
		{"encoding", "hex, base64, base64url", scheme(func(s *provider.Scheme) { s.Encoding = "raw" })},
		{"key encoding", "raw, base64, hex", scheme(func(s *provider.Scheme) { s.KeyEncoding = "utf8" })},
		{"required prefix", "key_prefix", scheme(func(s *provider.Scheme) { s.KeyPrefixRequired = true })},
		{"prefix and list", "exclude", scheme(func(s *provider.Scheme) { s.Prefix, s.List = "v0=", list })},
		{"separator", "one character", scheme(func(s *provider.Scheme) { s.List = &provider.List{Assign: "=", Names: []string{"v1"}} })},
		{"list without names", "names", scheme(func(s *provider.Scheme) { s.List = &provider.List{Separator: ",", Assign: "="} })},
		{"content without body", "lacks {body}", scheme(func(s *provider.Scheme) { s.Content = "{url}" })},
		{"unknown brace", "{url}, {header:<name>}", scheme(func(s *provider.Scheme) { s.Content = "{body}{method}" })},
		{"unpaired brace", "unpaired", scheme(func(s *provider.Scheme) { s.Content = "{body}}" })},
		{"open brace", "unpaired", scheme(func(s *provider.Scheme) { s.Content = "{body}{" })},
		{"nested brace", "not known", scheme(func(s *provider.Scheme) { s.Content = "{body}{http.request.{url}" })},
		{"placeholder of another kind", "not known", scheme(func(s *provider.Scheme) { s.Content = "{body}{env.HOME}" })},
		{"body placeholder", "{body} here", scheme(func(s *provider.Scheme) { s.Content = "{http.request.body}" })},
		{"header in content", "not a header name", scheme(func(s *provider.Scheme) { s.Content = "{body}{header:a b}" })},
		{"timestamp without source", "needs a timestamp", scheme(func(s *provider.Scheme) { s.Content = "{timestamp}{body}" })},
		{"unsigned timestamp", "lacks {timestamp}", scheme(func(s *provider.Scheme) { s.Timestamp = at("header", "X-T", "") })},
		{"timestamp format", "unix, unix_ms, rfc3339", scheme(func(s *provider.Scheme) { s.Timestamp = at("header", "X-T", "iso") })},
		{"timestamp source", "header, element, json", scheme(func(s *provider.Scheme) { s.Timestamp = at("query", "t", "") })},
		{"timestamp element without list", "not a list", scheme(func(s *provider.Scheme) { s.Timestamp = at("element", "t", "") })},
		{"timestamp element is a signature", "not a signature", scheme(func(s *provider.Scheme) { s.List, s.Timestamp = list, at("element", "v1", "") })},
		{"timestamp path", "json path", scheme(func(s *provider.Scheme) { s.Timestamp = at("json", "", "") })},
		{"timestamp header", "timestamp", scheme(func(s *provider.Scheme) { s.Timestamp = at("header", "", "") })},
		{"token with content", "don't apply", scheme(func(s *provider.Scheme) { s.Algorithm, s.Content = "token", "{body}" })},
		{"second scheme", "signature 2", func(s *provider.Spec) { s.Schemes = append(s.Schemes, provider.Scheme{}) }},
		{"nameless handshake", "name", func(s *provider.Spec) { s.Handshakes = []provider.Handshake{{Signed: true}} }},
		{"shapeless handshake", "whole body", func(s *provider.Spec) { s.Handshakes = []provider.Handshake{{Name: "a"}} }},
		{"handshake with two bodies", "exclude", func(s *provider.Spec) { s.Handshakes = []provider.Handshake{{Name: "a", Body: "x", EmptyBody: true}} }},
		{"handshake pattern", "body", func(s *provider.Spec) { s.Handshakes = []provider.Handshake{{Name: "a", Body: "("}} }},
		{"handshake source", "when", func(s *provider.Spec) {
			s.Handshakes = []provider.Handshake{{Name: "a", EmptyBody: true, When: []provider.Condition{{}}}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := valid()
			tt.spoil(&s)
			if _, err := provider.Compile(s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestPathErrors(t *testing.T) {
	for _, path := range []string{"", "$", "$.", ".a", "a.", "a..b", "a[", "a[]", "a[*]", "a.*", "$..a", "a[-1]", "a[01]", "a['b", "a['']", "a]b", "a[1]b",
		strings.Repeat("a.", 40) + "a"} {
		if _, err := provider.Compile(own(provider.FromJSONPaths(path))); err == nil || !strings.Contains(err.Error(), "allowed are") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func BenchmarkIdentifyLargeJSON(b *testing.B) {
	c := compile(b, lookup(b, "stripe"))
	body := []byte(`{"items":[` + strings.Repeat(`{"a":1,"b":"text with a few words","c":[true,null,1.5]},`, 20000) + `null],"id":"evt_1","type":"t"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := provider.Delivery{Method: "POST", Header: http.Header{}, Body: body}
		if _, err := c.Identify(&d); err != nil {
			b.Fatal(err)
		}
	}
}
