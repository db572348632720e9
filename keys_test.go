package webhookdedup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func TestEventID(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, test := range []struct {
		name     string
		parts    []string
		want     string
		original string
	}{
		{"one part", []string{"evt_1"}, "evt_1", ""},
		{"two parts", []string{"a", "bc"}, "a:bc", ""},
		{"the other two parts", []string{"ab", "c"}, "ab:c", ""},
		{"a colon within a part", []string{"a:b", "c"}, "a%3Ab:c", ""},
		{"percent", []string{"100%"}, "100%25", ""},
		{"control characters, space and beyond ASCII", []string{"a\r\nb c\x00\x7fé"}, "a%0D%0Ab%20c%00%7F%C3%A9", ""},
		{"256 bytes", []string{long[:256]}, long[:256], ""},
		{"257 bytes", []string{long[:257]}, hashedID([]byte(long[:257])), long[:256]},
		{"10 kB", []string{long}, hashedID([]byte(long)), long[:256]},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, original := eventID(test.parts)
			if id != test.want || original != test.original {
				t.Errorf("got %q, %q", id, original)
			}
			if !httpguts.ValidHeaderFieldValue(id) {
				t.Errorf("%q is no legal header value", id)
			}
		})
	}
}

func FuzzEventID(f *testing.F) {
	f.Add("a", "b:c", "a:b", "c")
	f.Add("%3A", "", ":", "%")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, _ := eventID([]string{a, b})
		two, _ := eventID([]string{c, d})
		if (one == two) != (a == c && b == d) {
			t.Errorf("(%q,%q) and (%q,%q) become %q and %q", a, b, c, d, one, two)
		}
		key := claim.Key{Environment: "e", Provider: "p", Scope: claim.EncodePart(a), EventID: one}
		if back, ok := claim.SplitKey(key.String()); !ok || back != key {
			t.Errorf("%+v becomes %+v", key, back)
		}
		if !httpguts.ValidHeaderFieldValue(one) {
			t.Errorf("%q is no legal header value", one)
		}
	})
}

func TestDefaultScope(t *testing.T) {
	for url, want := range map[string]string{
		"http://Hooks.Example.com/stripe":         "hooks.example.com/stripe",
		"http://hooks.example.com:8443/stripe":    "hooks.example.com/stripe",
		"http://hooks.example.com./stripe?a=b":    "hooks.example.com/stripe",
		"http://hooks.example.com//x/../%73tripe": "hooks.example.com/stripe",
		"http://hooks.example.com/Stripe/":        "hooks.example.com/Stripe/",
		"http://[::1]:80/":                        "::1/",
	} {
		r := httptest.NewRequest(http.MethodPost, url, nil)
		rewritten := httptest.NewRequest(http.MethodPost, "http://elsewhere/rewritten", nil)
		rewritten.Host = r.Host
		rewritten = rewritten.WithContext(context.WithValue(rewritten.Context(), caddyhttp.OriginalRequestCtxKey, *r))
		if got := defaultScope(rewritten); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
