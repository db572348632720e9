package provider_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func sum(h func() hash.Hash, key, content string) []byte {
	m := hmac.New(h, []byte(key))
	m.Write([]byte(content))
	return m.Sum(nil)
}

func delivery(body string, headers ...string) *provider.Delivery {
	d := &provider.Delivery{Method: "POST", Header: make(http.Header), Body: []byte(body)}
	for i := 0; i+1 < len(headers); i += 2 {
		d.Header.Add(headers[i], headers[i+1])
	}
	return d
}

// TestPublishedVectors are the examples in the providers' documentation.
func TestPublishedVectors(t *testing.T) {
	github := compile(t, lookup(t, "github"))
	d := delivery("Hello, World!", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if err := github.Verify(d, []provider.Key{key(t, github, "It's a Secret to Everybody")}, now, 0); err != nil {
		t.Error("GitHub:", err)
	}
	svix := compile(t, lookup(t, "svix"))
	d = delivery(`{"test": 2432232314}`, "Svix-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "Svix-Timestamp", "1614265330",
		"Svix-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	for _, secret := range []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		if err := svix.Verify(d, []provider.Key{key(t, svix, secret)}, time.Unix(1614265330, 0), 0); err != nil {
			t.Error("Svix:", err)
		}
	}
}

// TestOwnSchemes checks every algorithm, encoding and layout against signatures made by hand.
func TestOwnSchemes(t *testing.T) {
	const body = `{"id":"e1","at":1790000000123}`
	const seconds = "1790000000"
	hexOf := hex.EncodeToString
	for _, tt := range []struct {
		name    string
		scheme  provider.Scheme
		secret  string
		headers []string
	}{
		{"sha1 hex", provider.Scheme{Algorithm: "hmac-sha1", Header: "X-Sig"}, "k",
			[]string{"X-Sig", hexOf(sum(sha1.New, "k", body))}},
		{"upper case hex", provider.Scheme{Algorithm: "hmac-sha256", Header: "x-sig"}, "k",
			[]string{"X-Sig", strings.ToUpper(hexOf(sum(sha256.New, "k", body)))}},
		{"sha512 base64", provider.Scheme{Algorithm: "hmac-sha512", Header: "X-Sig", Encoding: "base64"}, "k",
			[]string{"X-Sig", base64.StdEncoding.EncodeToString(sum(sha512.New, "k", body))}},
		{"base64url without padding", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Encoding: "base64url"}, "k",
			[]string{"X-Sig", base64.RawURLEncoding.EncodeToString(sum(sha256.New, "k", body))}},
		{"base64url with padding", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Encoding: "base64url"}, "k",
			[]string{"X-Sig", base64.URLEncoding.EncodeToString(sum(sha256.New, "k", body))}},
		{"hex key", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", KeyEncoding: "hex"}, "6b6b",
			[]string{"X-Sig", hexOf(sum(sha256.New, "kk", body))}},
		{"timestamp header and prefix", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Prefix: "v0=", Content: "v0:{timestamp}:{body}",
			Timestamp: &provider.Timestamp{From: "header", Name: "X-Time"}}, "k",
			[]string{"X-Time", seconds, "X-Sig", "v0=" + hexOf(sum(sha256.New, "k", "v0:"+seconds+":"+body))}},
		{"leading zeros are signed as sent", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{timestamp}.{body}",
			Timestamp: &provider.Timestamp{From: "header", Name: "X-Time"}}, "k",
			[]string{"X-Time", "000" + seconds, "X-Sig", hexOf(sum(sha256.New, "k", "000"+seconds+"."+body))}},
		{"milliseconds in a list with spaces", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{timestamp}.{body}",
			List:      &provider.List{Separator: ",", Assign: "=", Names: []string{"v1"}},
			Timestamp: &provider.Timestamp{From: "element", Name: "t", Format: "unix_ms"}}, "k",
			[]string{"X-Sig", "t=" + seconds + "000, v1=" + hexOf(sum(sha256.New, "k", seconds+"000."+body))}},
		{"milliseconds in the body", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig",
			Timestamp: &provider.Timestamp{From: "json", Name: "$.at", Format: "unix_ms"}}, "k",
			[]string{"X-Sig", hexOf(sum(sha256.New, "k", body))}},
		{"rfc3339", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{header:X-Id}{timestamp}{body}",
			Timestamp: &provider.Timestamp{From: "header", Name: "X-Time", Format: "rfc3339"}}, "k",
			[]string{"X-Id", "7", "X-Time", "2026-09-21T14:13:20.000000001Z", "X-Sig", hexOf(sum(sha256.New, "k", "72026-09-21T14:13:20.000000001Z"+body))}},
		{"id, URL and placeholder", provider.Scheme{Algorithm: "hmac-sha256", Header: "X-Sig", Content: "{http.request.method}\n{url}\n{id}\n{body}"}, "k",
			[]string{"X-Sig", hexOf(sum(sha256.New, "k", "POST\nhttps://a.example/b?c\ne1\n"+body))}},
		{"token", provider.Scheme{Algorithm: "token", Header: "X-Token"}, "tok", []string{"X-Token", "tok"}},
		{"token with prefix", provider.Scheme{Algorithm: "token", Header: "Authorization", Prefix: "Bearer "}, "tok", []string{"Authorization", "Bearer tok"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The scheme goes through its JSON form, as a user's does.
			text, err := json.Marshal(tt.scheme)
			if err != nil {
				t.Fatal(err)
			}
			var scheme provider.Scheme
			if err := json.Unmarshal(text, &scheme); err != nil {
				t.Fatal(err)
			}
			c := compile(t, provider.Spec{ID: "acme", Own: true, Schemes: []provider.Scheme{scheme}, EventID: []provider.Part{provider.FromJSONPaths("id")}})
			d := delivery(body, tt.headers...)
			d.URL = "https://a.example/b?c"
			d.Placeholder = func(name string) (string, bool) { return d.Method, name == "http.request.method" }
			keys := []provider.Key{key(t, c, "00"), key(t, c, tt.secret)}
			at := now
			if strings.Contains(tt.name, "in the body") {
				at = time.UnixMilli(1790000000123)
			}
			if err := c.Verify(d, keys, at, time.Second); err != nil {
				t.Error(err)
			}
			if err := c.Verify(d, keys[:1], at, time.Second); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Errorf("wrong key: %v", err)
			}
			// What Sign makes is accepted as well.
			own := delivery(body, "X-Id", "7")
			own.URL, own.Placeholder = d.URL, d.Placeholder
			if err := c.Sign(own, tt.secret, at); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(own, keys, at, time.Second); err != nil {
				t.Error("own signature:", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	const body = `{"id":"evt_1"}`
	at := strconv.FormatInt(now.Unix(), 10)
	good := hex.EncodeToString(sum(sha256.New, "k", at+"."+body))
	stripeAt := func(offset int) string {
		ts := strconv.FormatInt(now.Unix()+int64(offset), 10)
		return "t=" + ts + ",v1=" + hex.EncodeToString(sum(sha256.New, "k", ts+"."+body))
	}
	github := "sha256=" + hex.EncodeToString(sum(sha256.New, "k", body))
	shopify := base64.StdEncoding.EncodeToString(sum(sha256.New, "k", body))
	for _, tt := range []struct {
		name, provider string
		headers        []string
		want           error
		early          bool // CheckHeaders refuses it already
	}{
		{"valid", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1=" + good}, nil, false},
		{"no signature", "stripe", nil, provider.ErrSignatureMissing, true},
		{"empty signature", "stripe", []string{"Stripe-Signature", ""}, provider.ErrSignatureMalformed, true},
		{"two headers", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1=" + good, "Stripe-Signature", "t=" + at + ",v1=" + good}, provider.ErrSignatureRepeated, true},
		{"several, one matches", "stripe", []string{"Stripe-Signature", "t=" + at + ",v0=" + good + ",v1=zz,v1=" + strings.Repeat("0", 64) + ",v1=" + good + ",x"}, nil, false},
		{"other scheme only", "stripe", []string{"Stripe-Signature", "t=" + at + ",v0=" + good}, provider.ErrSignatureMalformed, false},
		{"truncated", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1=" + good[:62]}, provider.ErrSignatureMalformed, false},
		{"odd length", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1=" + good[:63]}, provider.ErrSignatureMalformed, false},
		{"empty element", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1="}, provider.ErrSignatureMalformed, false},
		{"one bit", "stripe", []string{"Stripe-Signature", "t=" + at + ",v1=" + flip(good)}, provider.ErrSignatureMismatch, false},
		{"200 commas", "stripe", []string{"Stripe-Signature", "t=" + at + strings.Repeat(",", 200) + "v1=" + good}, nil, false},
		{"thousands of commas", "stripe", []string{"Stripe-Signature", "t=" + at + strings.Repeat(",", 5000) + "v1=" + good}, provider.ErrSignatureMalformed, false},
		{"thousands of commas first", "stripe", []string{"Stripe-Signature", strings.Repeat(",", 5000) + "t=" + at + ",v1=" + good}, provider.ErrTimestampMissing, false},
		{"too long", "stripe", []string{"Stripe-Signature", "t=" + at + strings.Repeat(",", 9000) + "v1=" + good}, provider.ErrSignatureMalformed, true},
		{"33rd signature", "stripe", []string{"Stripe-Signature", "t=" + at + strings.Repeat(",v1="+strings.Repeat("0", 64), 32) + ",v1=" + good}, provider.ErrSignatureMismatch, false},
		{"32nd signature", "stripe", []string{"Stripe-Signature", "t=" + at + strings.Repeat(",v1="+strings.Repeat("0", 64), 31) + ",v1=" + good}, nil, false},
		{"no timestamp", "stripe", []string{"Stripe-Signature", "v1=" + good}, provider.ErrTimestampMissing, false},
		{"empty timestamp", "stripe", []string{"Stripe-Signature", "t=,v1=" + good}, provider.ErrTimestampMissing, false},
		{"two timestamps", "stripe", []string{"Stripe-Signature", "t=" + at + ",t=" + at + ",v1=" + good}, provider.ErrTimestampMalformed, false},
		{"signed number", "stripe", []string{"Stripe-Signature", "t=+" + at + ",v1=" + good}, provider.ErrTimestampMalformed, false},
		{"fraction", "stripe", []string{"Stripe-Signature", "t=" + at + ".0,v1=" + good}, provider.ErrTimestampMalformed, false},
		{"overflow", "stripe", []string{"Stripe-Signature", "t=99999999999999999999999,v1=" + good}, provider.ErrTimestampMalformed, false},
		{"largest int64", "stripe", []string{"Stripe-Signature", "t=9223372036854775807,v1=" + good}, provider.ErrTimestampMalformed, false},
		{"year 9999", "stripe", []string{"Stripe-Signature", "t=253402300799,v1=" + good}, provider.ErrFuture, false},
		{"year 1970", "stripe", []string{"Stripe-Signature", "t=0,v1=" + good}, provider.ErrStale, false},
		{"as old as the tolerance", "stripe", []string{"Stripe-Signature", stripeAt(-300)}, nil, false},
		{"stale", "stripe", []string{"Stripe-Signature", stripeAt(-301)}, provider.ErrStale, false},
		{"as far ahead as the tolerance", "stripe", []string{"Stripe-Signature", stripeAt(300)}, nil, false},
		{"future", "stripe", []string{"Stripe-Signature", stripeAt(301)}, provider.ErrFuture, false},

		{"valid", "github", []string{"X-Hub-Signature-256", github}, nil, false},
		{"SHA-1 only", "github", []string{"X-Hub-Signature", "sha1=" + hex.EncodeToString(sum(sha1.New, "k", body))}, provider.ErrSignatureMissing, true},
		{"SHA-1 in the place of SHA-256", "github", []string{"X-Hub-Signature-256", "sha1=" + hex.EncodeToString(sum(sha1.New, "k", body))}, provider.ErrSignatureMalformed, false},
		{"prefix only", "github", []string{"X-Hub-Signature-256", "sha256="}, provider.ErrSignatureMalformed, false},
		{"no prefix", "github", []string{"X-Hub-Signature-256", github[7:]}, provider.ErrSignatureMalformed, false},
		{"joined lines", "github", []string{"X-Hub-Signature-256", github + ", " + github}, provider.ErrSignatureMalformed, false},
		{"base64 for hex", "github", []string{"X-Hub-Signature-256", "sha256=" + shopify}, provider.ErrSignatureMalformed, false},

		{"Webhooks", "shopify", []string{"X-Shopify-Hmac-Sha256", shopify}, nil, false},
		{"Events", "shopify", []string{"Shopify-Hmac-Sha256", shopify}, nil, false},
		{"first family decides", "shopify", []string{"X-Shopify-Hmac-Sha256", flip(shopify), "Shopify-Hmac-Sha256", shopify}, provider.ErrSignatureMismatch, false},
		{"no padding", "shopify", []string{"X-Shopify-Hmac-Sha256", strings.TrimRight(shopify, "=")}, provider.ErrSignatureMalformed, false},
		{"line break", "shopify", []string{"X-Shopify-Hmac-Sha256", shopify[:20] + "\n" + shopify[20:]}, provider.ErrSignatureMalformed, false},
		{"hex for base64", "shopify", []string{"X-Shopify-Hmac-Sha256", github[7:]}, provider.ErrSignatureMalformed, false},
	} {
		t.Run(tt.provider+"/"+tt.name, func(t *testing.T) {
			c := compile(t, lookup(t, tt.provider))
			d := delivery(body, tt.headers...)
			tolerance, _ := c.DefaultTolerance()
			err := c.Verify(d, []provider.Key{key(t, c, "k")}, now, tolerance)
			if !errors.Is(err, tt.want) || (err != nil) != errors.Is(err, provider.ErrSignature) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if early := c.CheckHeaders(d.Header); tt.early != (early != nil) || early != nil && early != err {
				t.Errorf("headers: %v", early)
			}
			if err != nil && strings.Contains(err.Error(), good[:8]) {
				t.Error("the error contains the signature")
			}
		})
	}
}

// flip changes one bit of the text's eighth character, which stays a digit of its encoding.
func flip(s string) string {
	b := []byte(s)
	if b[8] == '0' {
		b[8] = '1'
	} else {
		b[8] = '0'
	}
	return string(b)
}

func TestHeaderFamilies(t *testing.T) {
	const body, secret = `{"type":"a"}`, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	at := strconv.FormatInt(now.Unix(), 10)
	sig := "v1," + base64.StdEncoding.EncodeToString(sum(sha256.New, "0123456789abcdef01234567", "m1."+at+"."+body))
	c := compile(t, lookup(t, "svix"))
	keys := []provider.Key{key(t, c, secret)}
	for _, tt := range []struct {
		name    string
		headers []string
		want    error
		id      string
	}{
		{"svix", []string{"Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", sig}, nil, "m1"},
		{"webhook", []string{"Webhook-Id", "m1", "Webhook-Timestamp", at, "Webhook-Signature", sig}, nil, "m1"},
		{"both whole: the first decides", []string{"Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", sig,
			"Webhook-Id", "m2", "Webhook-Timestamp", at, "Webhook-Signature", "v1,x"}, nil, "m1"},
		{"an unsigned svix-id beside webhook headers", []string{"Svix-Id", "m2", "Webhook-Id", "m1", "Webhook-Timestamp", at, "Webhook-Signature", sig},
			provider.ErrFamiliesMixed, "m1"},
		{"an unsigned webhook-id beside svix headers", []string{"Webhook-Id", "m2", "Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", sig},
			provider.ErrFamiliesMixed, "m1"},
		{"ID of the other family", []string{"Webhook-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", sig}, provider.ErrContentMissing, "m1"},
		{"timestamp of the other family", []string{"Svix-Id", "m1", "Webhook-Timestamp", at, "Svix-Signature", sig}, provider.ErrTimestampMissing, "m1"},
		{"two IDs", []string{"Svix-Id", "m1", "Svix-Id", "m2", "Svix-Timestamp", at, "Svix-Signature", sig}, provider.ErrSignatureRepeated, ""},
		{"two timestamps", []string{"Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Timestamp", at, "Svix-Signature", sig}, provider.ErrSignatureRepeated, "m1"},
		{"other ID", []string{"Svix-Id", "m2", "Svix-Timestamp", at, "Svix-Signature", sig}, provider.ErrSignatureMismatch, "m2"},
		{"rotation", []string{"Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", "v1,bm9uc2Vuc2U= v2,x v1a,y " + sig}, nil, "m1"},
		{"no version", []string{"Svix-Id", "m1", "Svix-Timestamp", at, "Svix-Signature", sig[3:]}, provider.ErrSignatureMalformed, "m1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := delivery(body, tt.headers...)
			if err := c.Verify(d, keys, now, 0); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			id, _ := c.Identify(d)
			if got := strings.Join(id.Parts, " "); got != tt.id {
				t.Errorf("id %q, want %q", got, tt.id)
			}
		})
	}
}

func TestEd25519(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	whpk := "whpk_" + base64.StdEncoding.EncodeToString(public)
	whsk := "whsk_" + base64.StdEncoding.EncodeToString(private)
	for _, id := range []string{"standard-webhooks", "svix"} {
		c := compile(t, lookup(t, id))
		d := c.Spec().Example("m1", now)
		if err := c.Sign(&d, whsk, now); err != nil {
			t.Fatal(err)
		}
		header := c.Spec().Schemes[0].Header
		if !strings.HasPrefix(d.Header.Get(header), "v1a,") {
			t.Errorf("header %q", d.Header.Get(header))
		}
		symmetric, asymmetric := key(t, c, secretOf(id)), key(t, c, whpk)
		for _, keys := range [][]provider.Key{{asymmetric}, {symmetric, asymmetric}} {
			if err := c.Verify(&d, keys, now, 0); err != nil {
				t.Error(err)
			}
		}
		if err := c.Verify(&d, []provider.Key{symmetric}, now, 0); !errors.Is(err, provider.ErrSignatureMalformed) {
			t.Error("symmetric key only:", err)
		}
		// A public key is no HMAC secret.
		ts := d.Header.Get(c.Spec().Schemes[0].Timestamp.Name)
		forged := base64.StdEncoding.EncodeToString(sum(sha256.New, string(public), "m1."+ts+"."+string(d.Body)))
		forgedRaw := base64.StdEncoding.EncodeToString(sum(sha256.New, whpk, "m1."+ts+"."+string(d.Body)))
		d.Header.Set(header, "v1,"+forged+" v1,"+forgedRaw)
		if err := c.Verify(&d, []provider.Key{asymmetric}, now, 0); !errors.Is(err, provider.ErrSignature) {
			t.Error("algorithm confusion:", err)
		}
		if _, err := c.Key(whsk); err == nil || strings.Contains(err.Error(), whsk[5:15]) {
			t.Error("private key as verification key:", err)
		}
		if err := c.Sign(&d, whpk, now); err == nil {
			t.Error("signed with a public key")
		}
	}
}

func TestOwnEd25519(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := compile(t, provider.Spec{ID: "disc", Schemes: []provider.Scheme{{Algorithm: "ed25519", Header: "X-Sig", KeyEncoding: "hex",
		Content: "{timestamp}{body}", Timestamp: &provider.Timestamp{From: "header", Name: "X-Time"}}}})
	d := delivery("{}")
	if err := c.Sign(d, hex.EncodeToString(private.Seed()), now); err != nil {
		t.Fatal(err)
	}
	keys := []provider.Key{key(t, c, hex.EncodeToString(public))}
	if err := c.Verify(d, keys, now, 0); err != nil {
		t.Error(err)
	}
	d.Body = []byte("{ }")
	if err := c.Verify(d, keys, now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
		t.Error(err)
	}
}

func TestTolerance(t *testing.T) {
	c := compile(t, lookup(t, "stripe"))
	d := signed(t, c, "evt_1")
	keys := []provider.Key{key(t, c, secretOf("stripe"))}
	for _, tt := range []struct {
		name      string
		at        time.Time
		tolerance time.Duration
		want      error
	}{
		{"off", now.Add(1000 * time.Hour), -1, nil},
		{"none", now, 0, nil},
		{"within the second", now.Add(999 * time.Millisecond), 0, nil},
		{"a second", now.Add(time.Second), 0, provider.ErrStale},
		{"a second ahead", now.Add(-time.Second), 0, provider.ErrFuture},
		{"300.9 s are 300", now.Add(300900 * time.Millisecond), 300 * time.Second, nil},
		{"longest", now.Add(1000 * time.Hour), 1<<63 - 1, nil},
	} {
		if err := c.Verify(&d, keys, tt.at, tt.tolerance); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if d, ok := c.DefaultTolerance(); d != 300*time.Second || !ok {
		t.Error(d, ok)
	}
	if d, ok := compile(t, lookup(t, "github")).DefaultTolerance(); d != 0 || ok {
		t.Error(d, ok)
	}
	own := lookup(t, "stripe")
	own.Tolerance = 0
	if d, ok := compile(t, own).DefaultTolerance(); d != 5*time.Minute || !ok {
		t.Error(d, ok)
	}
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct{ provider, secret string }{
		{"stripe", ""}, {"stripe", "  "}, {"svix", "whsec_"}, {"svix", "whsec_not base64!"}, {"svix", "whpk_c2hvcnQ="}, {"svix", "whsk_c2hvcnQ="},
	} {
		_, err := compile(t, lookup(t, tt.provider)).Key(tt.secret)
		if err == nil || len(tt.secret) > 8 && strings.Contains(err.Error(), tt.secret[6:]) {
			t.Errorf("%s %q: %v", tt.provider, tt.secret, err)
		}
		if err := compile(t, lookup(t, tt.provider)).Sign(delivery("", "Svix-Id", "1"), tt.secret, now); err == nil || len(tt.secret) > 8 && strings.Contains(err.Error(), tt.secret[6:]) {
			t.Errorf("sign %s %q: %v", tt.provider, tt.secret, err)
		}
	}
	c := compile(t, lookup(t, "stripe"))
	k := key(t, c, "hush-hush")
	text, err := json.Marshal(struct{ K provider.Key }{k})
	if all := fmt.Sprintf("%v %+v %#v %s %q %s %v", k, k, k, k, k, text, []provider.Key{k}); err != nil || strings.Contains(all, "hush") {
		t.Error(all, err)
	}
	d := signed(t, c, "evt_1")
	other := compile(t, lookup(t, "stripe"))
	for name, keys := range map[string][]provider.Key{"none": nil, "zero": {{}}, "another's": {key(t, other, secretOf("stripe"))}} {
		if err := c.Verify(&d, keys, now, 0); !errors.Is(err, provider.ErrNoKey) || !errors.Is(err, provider.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unsigned := compile(t, provider.Spec{ID: "none"})
	if err := unsigned.Verify(&d, nil, now, 0); !errors.Is(err, provider.ErrNoScheme) {
		t.Error(err)
	}
	if err := unsigned.CheckHeaders(d.Header); err != nil {
		t.Error(err)
	}
	if _, err := unsigned.Key("x"); !errors.Is(err, provider.ErrNoScheme) {
		t.Error(err)
	}
	if err := unsigned.Sign(&d, "x", now); !errors.Is(err, provider.ErrNoScheme) {
		t.Error(err)
	}
}

func TestSignedContentMissing(t *testing.T) {
	for content, spoil := range map[string]func(*provider.Delivery){
		"{url}{body}":                 func(d *provider.Delivery) { d.URL = "" },
		"{header:X-Id}{body}":         func(d *provider.Delivery) { d.Header.Del("X-Id") },
		"{http.request.method}{body}": func(d *provider.Delivery) { d.Placeholder = nil },
		"{http.request.uri}{body}":    func(d *provider.Delivery) { d.Placeholder = func(string) (string, bool) { return "", false } },
		"{id}{body}":                  func(d *provider.Delivery) { d.Body = []byte("{}") },
	} {
		c := compile(t, provider.Spec{ID: "acme", Own: true, EventID: []provider.Part{provider.FromJSONPaths("id")},
			Schemes: []provider.Scheme{{Algorithm: "hmac-sha256", Header: "X-Sig", Content: content}}})
		d := delivery(`{"id":"1"}`, "X-Id", "1")
		d.URL = "https://a.example/"
		d.Placeholder = func(string) (string, bool) { return "v", true }
		if err := c.Sign(d, "k", now); err != nil {
			t.Fatal(content, err)
		}
		keys := []provider.Key{key(t, c, "k")}
		if err := c.Verify(d, keys, now, 0); err != nil {
			t.Error(content, err)
		}
		spoil(d)
		if err := c.Verify(d, keys, now, 0); !errors.Is(err, provider.ErrContentMissing) {
			t.Error(content, err)
		}
	}
}

func TestConcurrentVerify(t *testing.T) {
	c := compile(t, lookup(t, "svix"))
	keys := []provider.Key{key(t, c, secretOf("svix"))}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				id := fmt.Sprintf("m%d-%d", i, j)
				d := c.Spec().Example(id, now)
				if err := c.Sign(&d, secretOf("svix"), now); err != nil {
					t.Error(err)
				}
				got, err := c.Identify(&d)
				if err := errors.Join(err, c.Verify(&d, keys, now, 0)); err != nil || got.Parts[0] != id || got.Type != "invoice.paid" {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkVerifyIdentifyStripe(b *testing.B) {
	c := compile(b, lookup(b, "stripe"))
	d := signed(b, c, "evt_1PqLbR2eZvKYlo2C")
	keys := []provider.Key{key(b, c, secretOf("stripe"))}
	b.SetBytes(int64(len(d.Body)))
	b.ReportAllocs()
	for b.Loop() {
		fresh := provider.Delivery{Method: d.Method, Header: d.Header, Body: d.Body}
		if err := c.Verify(&fresh, keys, now, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Identify(&fresh); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyStripe(b *testing.B) {
	c := compile(b, lookup(b, "stripe"))
	d := signed(b, c, "evt_1PqLbR2eZvKYlo2C")
	keys := []provider.Key{key(b, c, secretOf("stripe"))}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Verify(&d, keys, now, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkThousandsOfCommas(b *testing.B) {
	c := compile(b, lookup(b, "stripe"))
	keys := []provider.Key{key(b, c, "k")}
	d := delivery("{}", "Stripe-Signature", "t="+strconv.FormatInt(now.Unix(), 10)+strings.Repeat(",", 8000))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Verify(d, keys, now, 0); err == nil {
			b.Fatal("accepted")
		}
	}
}
