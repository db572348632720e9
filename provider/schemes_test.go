package provider_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const formType = "application/x-www-form-urlencoded"

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func scheme(t testing.TB, schemes ...provider.Scheme) *provider.Compiled {
	t.Helper()
	return compile(t, provider.Spec{ID: "acme", Methods: []string{"POST", "GET"}, Schemes: schemes})
}

func when(from, name string, equals ...string) []provider.Condition {
	return []provider.Condition{{Source: provider.Source{From: from, Name: name}, Equals: equals}}
}

// urlSchemes sign the URL with a form, with nothing, or with a body's hash in the query.
func urlSchemes() []provider.Scheme {
	base := provider.Scheme{Algorithm: "hmac-sha1", Header: "X-Sig", Encoding: "base64", Extended: true, PortVariants: true}
	form, get, hash := base, base, base
	form.Content, form.When = "{url}{sorted_form}", when("media_type", "", formType)
	get.Content, get.When, get.EmptyBody = "{url}", when("method", "", "GET"), true
	hash.Content, hash.When = "{url}", when("query", "bodySHA256")
	hash.BodyHash = &provider.Source{From: "query", Name: "bodySHA256"}
	return []provider.Scheme{form, get, hash}
}

// TestURLSchemes: the signatures are those of npm twilio 6.2.0.
func TestURLSchemes(t *testing.T) {
	const jsonBody = `{"property": "value", "boolean": true}`
	const jsonHash = "bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
	c := scheme(t, urlSchemes()...)
	keys := []provider.Key{key(t, c, "12345")}
	for _, tt := range []struct {
		name, method, url, body, contentType, signature string
		want                                            error
	}{
		{"form", "POST", "https://example.com/sms?x=1", "From=%2B1415&CallSid=CA1&Body=a+b%26c", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", nil},
		{"form with a charset", "POST", "https://example.com/sms?x=1", "From=%2B1415&CallSid=CA1&Body=a+b%26c", formType + "; charset=UTF-8", "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", nil},
		{"percent-encoding of the same values", "POST", "https://example.com/sms?x=1", "&Body=a%20b%26%63&CallSid=CA1&&From=%2b1415&", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", nil},
		{"repeated parameters", "POST", "https://example.com/sms", "Tag=b&Tag=a&Tag=b&Body=%C3%A9+%2B&A=", formType, "YqLYGcxtD09qUiLCcKIkQlZkEgM=", nil},
		{"form changed", "POST", "https://example.com/sms?x=1", "From=%2B1415&CallSid=CA2&Body=a+b%26c", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrSignatureMismatch},
		{"line break behind the form", "POST", "https://example.com/sms?x=1", "From=%2B1415&CallSid=CA1&Body=a+b%26c\r\n", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrSignatureMismatch},
		{"byte order mark before the form", "POST", "https://example.com/sms?x=1", "\uFEFFFrom=%2B1415&CallSid=CA1&Body=a+b%26c", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrSignatureMismatch},
		{"broken escape", "POST", "https://example.com/sms?x=1", "From=%2B1415&CallSid=CA1&Body=%zz", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrContentMalformed},
		{"too many fields", "POST", "https://example.com/sms?x=1", strings.Repeat("a=1&", 10001), formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrContentMalformed},
		{"another URL", "POST", "https://example.com/sms?x=2", "From=%2B1415&CallSid=CA1&Body=a+b%26c", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrSignatureMismatch},
		{"no URL", "POST", "", "From=%2B1415&CallSid=CA1&Body=a+b%26c", formType, "n4EvtPO5ENIGY3KkKzVOJO4s8Ww=", provider.ErrContentMissing},
		{"signed with the default port", "POST", "https://example.com/sms", "A=1", formType, "fwQPbSfhHrD93TA31A2Gdb33dME=", nil},
		{"as received, port included", "POST", "https://example.com:443/sms", "A=1", formType, "fwQPbSfhHrD93TA31A2Gdb33dME=", nil},
		{"signed without the port", "GET", "https://example.com:443/get?a=1&b=2", "", "", "358jLoIZtEiaeoiBnwHqL4ph5Ig=", nil},
		{"GET", "GET", "https://example.com/get?a=1&b=2", "", "", "358jLoIZtEiaeoiBnwHqL4ph5Ig=", nil},
		{"GET with a body", "GET", "https://example.com/get?a=1&b=2", "x", "", "358jLoIZtEiaeoiBnwHqL4ph5Ig=", provider.ErrBodyHash},
		{"JSON", "POST", "https://example.com/json?" + jsonHash, jsonBody, "application/json", "8zmGxG9nKgURVEp0M4c3BWEsdIU=", nil},
		{"JSON changed", "POST", "https://example.com/json?" + jsonHash, jsonBody + "\n", "application/json", "8zmGxG9nKgURVEp0M4c3BWEsdIU=", provider.ErrBodyHash},
		{"hash of another length", "POST", "https://example.com/json?" + jsonHash[:70], jsonBody, "application/json", "8zmGxG9nKgURVEp0M4c3BWEsdIU=", provider.ErrBodyHash},
		{"hash changed with the body", "POST", "https://example.com/json?bodySHA256=" + hexSHA256("{}"), "{}", "application/json", "8zmGxG9nKgURVEp0M4c3BWEsdIU=", provider.ErrSignatureMismatch},
		{"neither", "POST", "https://example.com/json", jsonBody, "application/json", "8zmGxG9nKgURVEp0M4c3BWEsdIU=", provider.ErrSchemeUnknown},
		{"hex", "GET", "https://example.com/get?a=1&b=2", "", "", hex.EncodeToString(sum(sha1.New, "12345", "https://example.com/get?a=1&b=2")), provider.ErrSignatureMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(tt.body, "X-Sig", tt.signature)
			if tt.contentType != "" {
				d.Header.Set("Content-Type", tt.contentType)
			}
			d.Method, d.URL = tt.method, tt.url
			_, d.Query, _ = strings.Cut(tt.url, "?")
			if err := c.Verify(d, keys, now, 0); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := c.CheckHeaders(d.Header); err != nil {
				t.Errorf("headers: %v", err)
			}
			if tt.want != nil {
				return
			}
			if !strings.Contains(tt.url, ":443") && !strings.Contains(tt.name, "port") {
				d.Header.Del("X-Sig")
				if err := c.Sign(d, "12345", now); err != nil || d.Header.Get("X-Sig") != tt.signature {
					t.Errorf("signed %q, %v", d.Header.Get("X-Sig"), err)
				}
			}
			d.Header.Add("X-Sig", tt.signature)
			if err := c.Verify(d, keys, now, 0); !errors.Is(err, provider.ErrSignatureRepeated) {
				t.Errorf("header sent twice: %v", err)
			}
		})
	}
	d := delivery(jsonBody)
	d.URL, d.Query = "https://example.com/json?a=1&bodySHA256=old", "a=1&bodySHA256=old"
	if err := c.Sign(d, "12345", now); err != nil || d.URL != "https://example.com/json?a=1&"+jsonHash || d.Query != "a=1&"+jsonHash {
		t.Error(d.URL, d.Query, err)
	}
	if err := c.Verify(d, keys, now, 0); err != nil {
		t.Error(err)
	}
}

func hexSHA256(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// TestPlainHashes: the signatures are those of npm @hubspot/api-client 13.5.0.
func TestPlainHashes(t *testing.T) {
	const body = `[{"eventId":1}]`
	legacy := func(version, content string) provider.Scheme {
		return provider.Scheme{Algorithm: "sha256", Header: "X-Sig", Content: content, Extended: true, When: when("header", "X-Version", version)}
	}
	at := time.UnixMilli(1790000000123)
	c := scheme(t,
		provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig-V3", Encoding: "base64", Content: "{method}{url_decoded::/?@!$'()*,;}{body}{timestamp}", Extended: true,
			Timestamp: &provider.Timestamp{From: "header", Name: "X-Time", Format: "unix_ms"}},
		legacy("v2", "{secret}{method}{url}{body}"), legacy("v1", "{secret}{body}"))
	keys := []provider.Key{key(t, c, "other"), key(t, c, "cs")}
	const v1 = "60a017ea2a006d9337543c611ad188f5ca17676f320b9fb26c617a93d12aea66"
	const v2 = "b38d9f33134ff01e244666386ed672a79e544b6ac9764d4bb0ee6720a5cdc2e9"
	const v3 = "sbHEuJk2CGYUnhwcwuLDD2I+tee1umEIpApvrVzqRfQ="
	for _, tt := range []struct {
		name    string
		headers []string
		url     string
		want    error
		early   bool
	}{
		{"v1", []string{"X-Sig", v1, "X-Version", "v1"}, "", nil, false},
		{"v2", []string{"X-Sig", v2, "X-Version", "v2"}, "", nil, false},
		{"v3", []string{"X-Sig-V3", v3, "X-Time", "1790000000123"}, "", nil, false},
		{"v3, URL percent-encoded", []string{"X-Sig-V3", v3, "X-Time", "1790000000123"}, "https://example.com/h?a=b%3ac", nil, false},
		{"v3, another encoding is kept", []string{"X-Sig-V3", v3, "X-Time", "1790000000123"}, "https://example.com/h?a%3db:c", provider.ErrSignatureMismatch, false},
		{"v3 before v1", []string{"X-Sig-V3", flip(v3), "X-Time", "1790000000123", "X-Sig", v1, "X-Version", "v1"}, "", provider.ErrSignatureMismatch, false},
		{"v2 called v1", []string{"X-Sig", v2, "X-Version", "v1"}, "", provider.ErrSignatureMismatch, false},
		{"unknown version", []string{"X-Sig", v1, "X-Version", "v4"}, "", provider.ErrSchemeUnknown, true},
		{"no version", []string{"X-Sig", v1}, "", provider.ErrSchemeUnknown, true},
		{"seconds for milliseconds", []string{"X-Sig-V3", v3, "X-Time", "1790000000"}, "", provider.ErrStale, false},
		{"base64 for hex", []string{"X-Sig", v3, "X-Version", "v1"}, "", provider.ErrSignatureMalformed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(body, tt.headers...)
			if d.URL = tt.url; d.URL == "" {
				d.URL = "https://example.com/h?a=b:c"
			}
			if err := c.Verify(d, keys, at, time.Minute); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := c.CheckHeaders(d.Header); (err != nil) != tt.early {
				t.Errorf("headers: %v", err)
			}
		})
	}
}

// TestCanonicalRequest: the signatures are those of npm @contentful/node-apps-toolkit 3.16.1.
func TestCanonicalRequest(t *testing.T) {
	c := scheme(t, provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{method}\n{path_encoded}\n{signed_headers:X-Contentful-Signed-Headers}\n{body}",
		Extended: true, Timestamp: &provider.Timestamp{From: "header", Name: "X-Contentful-Timestamp", Format: "unix_ms"}})
	keys := []provider.Key{key(t, c, strings.Repeat("0123456789abcdef", 4))}
	const plain = "508048990a93d3dc4c27e3f00514bc144869943521c4aafd4d291ea71cedf647"
	const listed = "x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic"
	for _, tt := range []struct {
		name, path, list, signature string
		headers                     []string
		want                        error
	}{
		{"path", "/hooks", listed, plain, []string{"X-Contentful-Topic", "t"}, nil},
		{"space around a value", "/hooks", listed, plain, []string{"X-Contentful-Topic", " t "}, nil},
		{"escapes and query", "/hooks/a b%20c?x=1&y=é", "content-type," + listed, "5195df4b9b4f6db74dce48c48bc0da3edadd3f294341a59efed6514b8584f4c6",
			[]string{"X-Contentful-Topic", "ContentManagement.Entry.publish", "Content-Type", "application/json"}, nil},
		{"a header that is not listed may differ", "/hooks", listed, plain, []string{"X-Contentful-Topic", "t", "User-Agent", "x"}, nil},
		{"listed header changed", "/hooks", listed, plain, []string{"X-Contentful-Topic", "u"}, provider.ErrSignatureMismatch},
		{"listed header missing", "/hooks", listed, plain, nil, provider.ErrContentMissing},
		{"listed header twice", "/hooks", listed, plain, []string{"X-Contentful-Topic", "t", "X-Contentful-Topic", "u"}, provider.ErrContentMissing},
		{"timestamp not listed", "/hooks", "x-contentful-signed-headers,x-contentful-topic", plain, []string{"X-Contentful-Topic", "t"}, provider.ErrContentMalformed},
		{"list not listed", "/hooks", "x-contentful-timestamp,x-contentful-topic", plain, []string{"X-Contentful-Topic", "t"}, provider.ErrContentMalformed},
		{"name listed twice", "/hooks", listed + ",x-contentful-topic", plain, []string{"X-Contentful-Topic", "t"}, provider.ErrContentMalformed},
		{"no name", "/hooks", listed + ",", plain, []string{"X-Contentful-Topic", "t"}, provider.ErrContentMalformed},
		{"too many names", "/hooks", listed + strings.Repeat(",x", 70), plain, []string{"X-Contentful-Topic", "t"}, provider.ErrContentMalformed},
		{"another path", "/hook", listed, plain, []string{"X-Contentful-Topic", "t"}, provider.ErrSignatureMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(`{"a":1}`, append([]string{"X-Sig", tt.signature, "X-Contentful-Signed-Headers", tt.list, "X-Contentful-Timestamp", "1790000000123"}, tt.headers...)...)
			d.URL = "https://example.com" + tt.path
			if err := c.Verify(d, keys, time.UnixMilli(1790000000123), 0); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestSeveralSignatures: lists without names, lists of key names, several headers.
func TestSeveralSignatures(t *testing.T) {
	hexOf := func(secret, content string) string { return hex.EncodeToString(sum(sha256.New, secret, content)) }
	positional := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{timestamp}.{body}", List: &provider.List{Separator: ",", Names: []string{"*"}},
		Timestamp: &provider.Timestamp{From: "element", Name: "1", Format: "unix_auto"}}
	old := strings.Repeat("0", 64)
	numbered := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig-1", Encoding: "base64"}
	for i := 2; i <= 100; i++ {
		numbered.Also = append(numbered.Also, "X-Sig-"+hundred(i))
	}
	b64Of := func(secret string) string { return b64(sum(sha256.New, secret, "{}")) }
	for _, tt := range []struct {
		name    string
		scheme  provider.Scheme
		headers []string
		want    error
	}{
		{"milliseconds", positional, []string{"X-Sig", "1790000000123," + hexOf("k", "1790000000123.{}")}, nil},
		{"seconds", positional, []string{"X-Sig", "1790000000," + hexOf("k", "1790000000.{}")}, nil},
		{"two signatures", positional, []string{"X-Sig", "1790000000," + old + "," + hexOf("k", "1790000000.{}")}, nil},
		{"spaces", positional, []string{"X-Sig", "1790000000, " + hexOf("k", "1790000000.{}")}, nil},
		{"stale", positional, []string{"X-Sig", "1780000000123," + hexOf("k", "1780000000123.{}")}, provider.ErrStale},
		{"the first element is never a signature", positional, []string{"X-Sig", hexOf("k", "1790000000.{}")}, provider.ErrTimestampMalformed},
		{"no signature", positional, []string{"X-Sig", "1790000000"}, provider.ErrSignatureMalformed},
		{"only commas", positional, []string{"X-Sig", ",,,"}, provider.ErrTimestampMissing},
		{"first header", numbered, []string{"X-Sig-1", b64Of("k")}, nil},
		{"hundredth header", numbered, []string{"X-Sig-1", b64Of("o"), "X-Sig-7", b64Of("p"), "X-Sig-100", b64Of("k")}, nil},
		{"only a later header", numbered, []string{"X-Sig-2", b64Of("k")}, nil},
		{"hundred and first header", numbered, []string{"X-Sig-101", b64Of("k")}, provider.ErrSignatureMissing},
		{"none matches", numbered, []string{"X-Sig-1", b64Of("o"), "X-Sig-2", b64Of("p")}, provider.ErrSignatureMismatch},
		{"a malformed one beside", numbered, []string{"X-Sig-1", "x", "X-Sig-2", b64Of("k")}, nil},
		{"all malformed", numbered, []string{"X-Sig-1", "x", "X-Sig-2", "y"}, provider.ErrSignatureMalformed},
		{"an empty one", numbered, []string{"X-Sig-1", b64Of("k"), "X-Sig-2", ""}, provider.ErrSignatureMalformed},
		{"a later one twice", numbered, []string{"X-Sig-1", b64Of("k"), "X-Sig-2", b64Of("k"), "X-Sig-2", b64Of("k")}, provider.ErrSignatureRepeated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := scheme(t, tt.scheme)
			d := delivery("{}", tt.headers...)
			if err := c.Verify(d, []provider.Key{key(t, c, "k")}, now, time.Minute); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			d = delivery("{}")
			if err := c.Sign(d, "k", now); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(d, []provider.Key{key(t, c, "k")}, now, time.Minute); err != nil {
				t.Error("signed:", d.Header, err)
			}
		})
	}
}

func hundred(i int) string {
	digits := []byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)}
	return strings.TrimLeft(string(digits), "0")
}

// TestSignatureInBody: the signatures of the XML are those of npm braintree 3.40.0.
func TestSignatureInBody(t *testing.T) {
	triple := func(from, timestamp, token, signature string) provider.Scheme {
		return provider.Scheme{Algorithm: "hmac-sha256", Signature: &provider.Source{From: from, Name: signature}, Content: "{timestamp}{" + from + ":" + token + "}",
			Extended: true, BodyUnsigned: true, Timestamp: &provider.Timestamp{From: from, Name: timestamp}}
	}
	pairs := func(content string) provider.Scheme {
		return provider.Scheme{Algorithm: "hmac-sha1", Signature: &provider.Source{From: "form", Name: "sig"}, Content: content, Extended: true, BodyUnsigned: true,
			List: &provider.List{Separator: "&", Assign: "|", Names: []string{"*"}}, KeyHash: "sha1", KeyName: "|"}
	}
	both := []provider.Scheme{triple("json", "s.timestamp", "s.token", "s.signature"), triple("form", "timestamp", "token", "signature")}
	xml := []provider.Scheme{pairs("{form:payload}"), pairs("{form:payload}\n")}
	good := hex.EncodeToString(sum(sha256.New, "k", "1790000000tok"))
	const payload, pair = "payload=PG5vdGlmaWNhdGlvbi8%2B%0A", "79322808a8c1268874efebc85ffa202140e51b76"
	for _, tt := range []struct {
		name         string
		schemes      []provider.Scheme
		secret, body string
		contentType  string
		want         error
	}{
		{"JSON", both, "k", `{"s":{"timestamp":"1790000000","token":"tok","signature":"` + good + `"},"e":1}`, "application/json", nil},
		{"number", both, "k", `{"s":{"timestamp":1790000000,"token":"tok","signature":"` + good + `"}}`, "", nil},
		{"form", both, "k", "timestamp=1790000000&token=tok&signature=" + good, formType, nil},
		{"form that is no form", both, "k", "timestamp=1790000000&token=tok&signature=" + good, "", provider.ErrSignatureMissing},
		{"no signature", both, "k", `{"s":{"timestamp":"1790000000","token":"tok"}}`, "", provider.ErrSignatureMissing},
		{"no token", both, "k", `{"s":{"timestamp":"1790000000","signature":"` + good + `"}}`, "", provider.ErrContentMissing},
		{"no timestamp", both, "k", `{"s":{"token":"tok","signature":"` + good + `"}}`, "", provider.ErrTimestampMissing},
		{"stale", both, "k", `{"s":{"timestamp":"1780000000","token":"tok","signature":"` + good + `"}}`, "", provider.ErrStale},
		{"last of two tokens counts", both, "k", `{"s":{"timestamp":"1790000000","token":"x","token":"tok","signature":"` + good + `"}}`, "", nil},
		{"two signatures, the last is wrong", both, "k", `{"s":{"timestamp":"1790000000","token":"tok","signature":"` + good + `","signature":"` + flip(good) + `"}}`, "", provider.ErrSignatureMismatch},
		{"huge signature", both, "k", `{"s":{"timestamp":"1790000000","token":"tok","signature":"` + strings.Repeat("0", 9000) + `"}}`, "", provider.ErrSignatureMalformed},
		{"not JSON", both, "k", `{"s":`, "", provider.ErrSignatureMissing},
		{"byte order mark", both, "k", "\uFEFF" + `{"s":{"timestamp":"1790000000","token":"tok","signature":"` + good + `"}}`, "", provider.ErrSignatureMissing},
		{"line break behind", both, "k", `{"s":{"timestamp":"1790000000","token":"tok","signature":"` + good + `"}}` + "\r\n", "", nil},
		{"pair", xml, "pub|private_key", payload + "&sig=pub%7C" + pair, formType, nil},
		{"pair without the key's name", xml, "private_key", payload + "&sig=pub%7C" + pair, formType, nil},
		{"pairs of several keys", xml, "private_key", payload + "&sig=a%7C" + flip(pair) + "%26pub%7C" + pair, formType, nil},
		{"payload without its line break", xml, "private_key", "payload=PG5vdGlmaWNhdGlvbi8%2B&sig=pub%7C" + pair, formType, nil},
		{"plus for a plus", xml, "private_key", "payload=PG5vdGlmaWNhdGlvbi8+%0A&sig=pub%7C" + pair, formType, provider.ErrSignatureMismatch},
		{"signature without a name", xml, "private_key", payload + "&sig=" + pair, formType, provider.ErrSignatureMalformed},
		{"key not derived", xml, "other_key", payload + "&sig=pub%7C" + pair, formType, provider.ErrSignatureMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := scheme(t, tt.schemes...)
			d := delivery(tt.body)
			if tt.contentType != "" {
				d.Header.Set("Content-Type", tt.contentType)
			}
			keys := []provider.Key{key(t, c, tt.secret)}
			if err := c.Verify(d, keys, now, time.Minute); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := c.CheckHeaders(d.Header); err != nil {
				t.Errorf("headers: %v", err)
			}
			if tt.want != nil {
				return
			}
			before := string(d.Body)
			if err := c.Sign(d, tt.secret, now); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(d, keys, now, time.Minute); err != nil {
				t.Errorf("signed %s: %v, was %s", d.Body, err, before)
			}
		})
	}
	c := scheme(t, both...)
	if err := c.Sign(delivery(`{"s":{"timestamp":"1790000000","token":"tok"}}`), "k", now); err == nil {
		t.Error("signed a body without a place")
	}
}

// TestEachElement: the signature is that of npm @adyen/api-library 32.1.0.
func TestEachElement(t *testing.T) {
	const secret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	const signature = "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="
	const item = `{"Item":{"psp":"7914073381342284","account":"TestMerchant","reference":"TestPayment-1407325143704","amount":{"value":1130,"currency":"EUR"},"code":"AUTHORISATION","success":"true","data":{"sig":"` + signature + `"}}}`
	const other = `{"Item":{"psp":"7914073381342285","account":"TestMerchant","reference":"TestPayment-1407325143704","amount":{"value":1130,"currency":"EUR"},"code":"AUTHORISATION","success":"true","data":{"sig":"` + signature + `"}}}`
	c := scheme(t, provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Encoding: "base64", KeyEncoding: "hex"},
		provider.Scheme{Algorithm: "hmac-sha256", Signature: &provider.Source{From: "json", Name: "Item.data.sig"}, Each: "$.items", Encoding: "base64", KeyEncoding: "hex",
			Content: "{json:Item.psp}:{json?:Item.original}:{json:Item.account}:{json:Item.reference}:{json:Item.amount.value}:{json:Item.amount.currency}:{json:Item.code}:{json:Item.success}", Extended: true, BodyUnsigned: true})
	keys := []provider.Key{key(t, c, secret)}
	for _, tt := range []struct {
		name, body string
		want       error
	}{
		{"one", `{"items":[` + item + `]}`, nil},
		{"two", `{"items":[` + item + ` , ` + item + `]}` + "\n", nil},
		{"second is another one's", `{"items":[` + item + `,` + other + `]}`, provider.ErrSignatureMismatch},
		{"second is unsigned", `{"items":[` + item + `,{"Item":{"psp":"1"}}]}`, provider.ErrSignatureMalformed},
		{"first is unsigned", `{"items":[{"Item":{"psp":"1"}},` + item + `]}`, provider.ErrSignatureMissing},
		{"a scalar", `{"items":[` + item + `,7]}`, provider.ErrSignatureMalformed},
		{"none", `{"items":[]}`, provider.ErrSignatureMissing},
		{"no array", `{"items":` + item + `}`, provider.ErrSignatureMissing},
		{"last of two arrays counts", `{"items":[` + other + `],"items":[` + item + `]}`, nil},
		{"no JSON", `{"items":[` + item, provider.ErrSignatureMissing},
		{"too many", `{"items":[` + strings.Repeat("1,", provider.MaxElements) + `1]}`, provider.ErrSignatureMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(tt.body)
			if err := c.Verify(d, keys, now, 0); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	d := delivery(`{"items":[` + other + `,` + item + `]}`)
	if err := compile(t, provider.Spec{ID: "acme", Schemes: c.Spec().Schemes[1:]}).Sign(d, secret, now); err != nil || c.Verify(d, keys, now, 0) != nil || !strings.Contains(string(d.Body), signature) {
		t.Errorf("signed: %v, %s", err, d.Body)
	}
}

func TestBasic(t *testing.T) {
	c := scheme(t, provider.Scheme{Algorithm: "basic", Header: "Authorization"})
	keys := []provider.Key{key(t, c, "old:pw"), key(t, c, "user:pass:word")}
	credentials := b64([]byte("user:pass:word"))
	for value, want := range map[string]error{
		"Basic " + credentials:                     nil,
		"basic  " + credentials:                    nil,
		"Basic " + b64([]byte("old:pw")):           nil,
		"Basic " + b64([]byte("user:pass:worD")):   provider.ErrSignatureMismatch,
		"Basic " + b64([]byte("user:pass:word\n")): provider.ErrSignatureMismatch,
		"Bearer " + credentials:                    provider.ErrSignatureMalformed,
		credentials:                                provider.ErrSignatureMalformed,
		"Basic !":                                  provider.ErrSignatureMalformed,
		"Basic ":                                   provider.ErrSignatureMalformed,
	} {
		if err := c.Verify(delivery("{}", "Authorization", value), keys, now, 0); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", value, err, want)
		}
	}
	if _, err := c.Key("user"); err == nil {
		t.Error("a secret without a password")
	}
	d := delivery("{}")
	if err := c.Sign(d, "user:pass:word", now); err != nil || d.Header.Get("Authorization") != "Basic "+credentials {
		t.Error(d.Header, err)
	}
	if err := c.Sign(d, "user", now); err == nil {
		t.Error("signed without a password")
	}
}

func TestRefusedSecrets(t *testing.T) {
	c := scheme(t, provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", RefusedSecrets: []string{"published"}})
	if _, err := c.Key("published"); err == nil || strings.Contains(err.Error(), `"published"`) {
		t.Error(err)
	}
	key(t, c, "hidden")
}

// TestOnlyHandshakes: a token in a URL verifies the handshake, never an event.
func TestOnlyHandshakes(t *testing.T) {
	s := provider.Spec{ID: "acme", Schemes: []provider.Scheme{
		{Algorithm: "hmac-sha256", Header: "X-Sig"},
		{Algorithm: "token", Signature: &provider.Source{From: "query", Name: "token"}, KeyPrefix: "token:", KeyPrefixRequired: true, OnlyHandshakes: true},
	}, Handshakes: []provider.Handshake{{Name: "challenge", Signed: true, Method: "GET", EmptyBody: true, When: when("query", "challenge"),
		Answer: &provider.Answer{Body: "{query:challenge}"}}}}
	c := compile(t, s)
	keys := []provider.Key{key(t, c, "k"), key(t, c, "token:tok")}
	get := provider.Delivery{Method: "GET", Header: http.Header{}, Query: "challenge=c1&token=tok"}
	if err := c.Verify(&get, keys, now, 0); err != nil {
		t.Error(err)
	}
	status, header, body, ok := c.AnswerHandshake(&get, keys)
	if !ok || status != 200 || string(body) != "c1" || header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Error(status, header, string(body), ok)
	}
	get.Query = "challenge=c1&token=toK"
	if err := c.Verify(&get, keys, now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
		t.Error(err)
	}
	if _, _, _, ok := c.AnswerHandshake(&get, keys); ok {
		t.Error("answered without the token")
	}
	get.Query = "challenge=c1&token=k"
	if _, _, _, ok := c.AnswerHandshake(&get, keys); ok {
		t.Error("the key of the MAC is no token")
	}
	event := delivery("{}")
	event.Query = "challenge=c1&token=tok"
	if err := c.Verify(event, keys, now, 0); !errors.Is(err, provider.ErrSignatureMissing) {
		t.Error("event with a token:", err)
	}
	event.Header.Set("X-Sig", hex.EncodeToString(sum(sha256.New, "tok", "{}")))
	if err := c.Verify(event, keys, now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
		t.Error("the token is no key of the MAC:", err)
	}
	if err := c.CheckHeaders(http.Header{}); !errors.Is(err, provider.ErrSignatureMissing) {
		t.Error(err)
	}
}

func TestSchemeCompileErrors(t *testing.T) {
	source := func(from, name string) *provider.Source { return &provider.Source{From: from, Name: name} }
	mac := func(f func(*provider.Scheme)) provider.Scheme {
		s := provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig"}
		f(&s)
		return s
	}
	rsa := func(f func(*provider.Scheme)) provider.Scheme {
		s := provider.Scheme{Algorithm: "rsa-sha256", Header: "X-Sig", Content: "{secret}{body}", Extended: true,
			Certificate: &provider.Certificate{URL: *source("header", "X-Cert"), Pattern: "https://a\\.example/.*"}}
		f(&s)
		return s
	}
	jwt := func(f func(*provider.Scheme)) provider.Scheme {
		s := provider.Scheme{Algorithm: "jwt-es256", Header: "X-Sig", BodyHash: source("claim", "hash")}
		f(&s)
		return s
	}
	nothing := func(*provider.Scheme) {}
	for _, s := range []provider.Scheme{mac(nothing), rsa(nothing), jwt(nothing)} {
		scheme(t, s)
	}
	for _, tt := range []struct {
		name, want string
		scheme     provider.Scheme
	}{
		{"extended braces without leave", "not known", mac(func(s *provider.Scheme) { s.Content = "{method}{body}" })},
		{"extended braces are listed", "{sorted_form}", mac(func(s *provider.Scheme) { s.Content, s.Extended = "{methods}{body}", true })},
		{"content without body", "lacks {body}", mac(func(s *provider.Scheme) { s.Content, s.Extended = "{url}{query:a}", true })},
		{"header and signature", "exclude", mac(func(s *provider.Scheme) { s.Signature = source("json", "a") })},
		{"signature in a header source", "json, form, query", mac(func(s *provider.Scheme) { s.Header, s.Signature = "", source("header", "a") })},
		{"signature path", "json path", mac(func(s *provider.Scheme) { s.Header, s.Signature = "", source("json", "a..b") })},
		{"also with a list", "without a list", mac(func(s *provider.Scheme) {
			s.Also, s.List = []string{"X-B"}, &provider.List{Separator: ",", Assign: "=", Names: []string{"v1"}}
		})},
		{"also with a public key", "MACs", mac(func(s *provider.Scheme) { s.Algorithm, s.Also = "ed25519", []string{"X-B"} })},
		{"each in a header", "each", mac(func(s *provider.Scheme) { s.Each = "$" })},
		{"each path", "each", mac(func(s *provider.Scheme) { s.Header, s.Signature, s.Each = "", source("json", "a"), "$..a" })},
		{"body hash in a header", "query parameter", mac(func(s *provider.Scheme) { s.BodyHash, s.Content = source("header", "X"), "{url}" })},
		{"body hash without URL", "{url}", mac(func(s *provider.Scheme) { s.BodyHash, s.Content = source("query", "a"), "{body}" })},
		{"secret in a MAC's content", "{secret}", mac(func(s *provider.Scheme) { s.Content, s.Extended = "{secret}{body}", true })},
		{"hash without secret", "{secret}", mac(func(s *provider.Scheme) { s.Algorithm = "sha256" })},
		{"key hash", "sha1, sha256", mac(func(s *provider.Scheme) { s.KeyHash = "md5" })},
		{"key name", "one character", mac(func(s *provider.Scheme) { s.KeyName = "::" })},
		{"condition", "when", mac(func(s *provider.Scheme) { s.When = when("cookie", "a") })},
		{"condition pattern", "pattern", mac(func(s *provider.Scheme) {
			s.When = []provider.Condition{{Source: *source("header", "A"), Pattern: "("}}
		})},
		{"pattern that would compile wrapped", "pattern", mac(func(s *provider.Scheme) {
			s.When = []provider.Condition{{Source: *source("header", "A"), Pattern: ")|("}}
		})},
		{"absent with values", "absent", mac(func(s *provider.Scheme) {
			s.When = []provider.Condition{{Source: *source("header", "A"), Equals: []string{"x"}, Absent: true}}
		})},
		{"method with a name", "no name", mac(func(s *provider.Scheme) { s.When = when("method", "x") })},
		{"timestamp claim without a JWT", "claim", mac(func(s *provider.Scheme) { s.Timestamp = &provider.Timestamp{From: "claim", Name: "iat"} })},
		{"form timestamp without name", "empty", mac(func(s *provider.Scheme) { s.Timestamp = &provider.Timestamp{From: "form"} })},
		{"json lines", "json path", mac(func(s *provider.Scheme) { s.Content, s.Extended = "{json_lines:a,}{body}", true })},
		{"certificate for a MAC", "rsa", mac(func(s *provider.Scheme) { s.Certificate = &provider.Certificate{} })},
		{"rsa without certificate", "certificate", rsa(func(s *provider.Scheme) { s.Certificate = nil })},
		{"rsa without secret or pin", "pin", rsa(func(s *provider.Scheme) { s.Content = "{body}" })},
		{"certificate without pattern", "https://", rsa(func(s *provider.Scheme) { s.Certificate.Pattern = "" })},
		{"certificate of any scheme", "https://", rsa(func(s *provider.Scheme) { s.Certificate.Pattern = ".*paypal.com/" })},
		{"certificate pattern", "pattern", rsa(func(s *provider.Scheme) { s.Certificate.Pattern = "https://(" })},
		{"certificate name", "name", rsa(func(s *provider.Scheme) { s.Certificate.Names = []string{"("} })},
		{"certificate source", "source", rsa(func(s *provider.Scheme) { s.Certificate.URL.From = "x" })},
		{"pin source", "pin", rsa(func(s *provider.Scheme) { s.Pin = source("x", "") })},
		{"pin for a MAC", "pin", mac(func(s *provider.Scheme) { s.Pin = source("json", "a") })},
		{"jwt with content", "nothing else", jwt(func(s *provider.Scheme) { s.Content = "{body}" })},
		{"jwt without body hash", "body hash", jwt(func(s *provider.Scheme) { s.BodyHash = nil })},
		{"jwt with a timestamp header", "claim", jwt(func(s *provider.Scheme) { s.Timestamp = &provider.Timestamp{From: "header", Name: "X-T"} })},
		{"basic with content", "don't apply", mac(func(s *provider.Scheme) { s.Algorithm, s.Content = "basic", "{body}" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := provider.Compile(provider.Spec{ID: "acme", Schemes: []provider.Scheme{tt.scheme}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := provider.Compile(own(provider.Part{{From: "method"}})); err == nil || !strings.Contains(err.Error(), "for conditions") {
		t.Error(err)
	}
}
