package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// now is when the tests sign and verify, unless they say otherwise.
var now = time.Unix(1790000000, 0)

func compile(t testing.TB, s provider.Spec) *provider.Compiled {
	t.Helper()
	c, err := provider.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func lookup(t testing.TB, id string) provider.Spec {
	t.Helper()
	s, ok := provider.Lookup(id)
	if !ok {
		t.Fatalf("no provider %q", id)
	}
	return s
}

func key(t testing.TB, c *provider.Compiled, secret string) provider.Key {
	t.Helper()
	k, err := c.Key(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLookupGivesFreshEntries(t *testing.T) {
	a := lookup(t, "stripe")
	a.Schemes[0].Header = "X"
	a.EventID[0][0].Name = "x"
	a.Sample.Header["Content-Type"] = "x"
	if b := lookup(t, "stripe"); reflect.DeepEqual(a, b) || b.Schemes[0].Header != "Stripe-Signature" {
		t.Error("an entry that was changed is handed out again")
	}
}

func TestRetryOnStatus(t *testing.T) {
	standard := lookup(t, "standard-webhooks").Retry
	for status, want := range map[int]bool{0: false, 200: false, 302: true, 410: false, 429: true, 503: true, 999: false, -1: false} {
		if got := standard.OnStatus(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	if lookup(t, "github").Retry.OnStatus(503) {
		t.Error("GitHub doesn't retry")
	}
}

// TestVectors takes deliveries that the providers' own packages signed; testdata/vectors.mjs made them.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		SDK, Provider, Name, Secret, Body string
		Time                              int64
		Headers                           map[string]string
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(len(vectors), err)
	}
	for _, v := range vectors {
		t.Run(v.SDK+"/"+v.Provider+"/"+v.Name, func(t *testing.T) {
			c := compile(t, lookup(t, v.Provider))
			keys := []provider.Key{key(t, c, v.Secret)}
			at := time.Unix(v.Time, 0)
			d := provider.Delivery{Method: "POST", Header: make(http.Header), Body: []byte(v.Body)}
			for name, value := range v.Headers {
				d.Header.Set(name, value)
			}
			if err := c.Verify(&d, keys, at, 0); err != nil {
				t.Error(err)
			}
			if _, err := c.Identify(&d); err != nil {
				t.Error(err)
			}
			// Ours is the same signature, byte for byte.
			ours := provider.Delivery{Method: "POST", Header: make(http.Header), Body: d.Body}
			spec := c.Spec()
			if d.Header.Get("Webhook-Id") != "" && v.Provider == "svix" {
				spec.Schemes = spec.Schemes[2:]
			}
			for _, s := range spec.Schemes[:1] {
				if s.IDHeader != "" {
					ours.Header.Set(s.IDHeader, v.Headers[s.IDHeader])
				}
				if err := compile(t, spec).Sign(&ours, v.Secret, at); err != nil {
					t.Fatal(err)
				}
				if got, want := ours.Header.Get(s.Header), d.Header.Get(s.Header); got != want {
					t.Errorf("%s: %q, want %q", s.Header, got, want)
				}
			}
			wrong := []provider.Key{key(t, c, "whsec_d3Jvbmcgd3Jvbmcgd3Jvbmc=")}
			if err := c.Verify(&d, wrong, at, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Errorf("wrong key: %v", err)
			}
			d.Body = append([]byte(" "), d.Body...)
			if err := c.Verify(&d, keys, at, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Errorf("tampered: %v", err)
			}
		})
	}
}
