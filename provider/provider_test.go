package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
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

// secrets are valid ones for the catalogue's entries.
var secrets = map[string]string{
	"svix":              "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
	"standard-webhooks": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
}

func secretOf(id string) string {
	if s := secrets[id]; s != "" {
		return s
	}
	return "a secret of " + id
}

// signed returns an example of the provider, signed.
func signed(t testing.TB, c *provider.Compiled, id string) provider.Delivery {
	t.Helper()
	d := c.Spec().Example(id, now)
	if err := c.Sign(&d, secretOf(c.Spec().ID), now); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCatalogue(t *testing.T) {
	all := provider.All()
	if !slices.IsSortedFunc(all, func(a, b provider.Spec) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("not sorted")
	}
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) {
			if s.Title == "" || !strings.HasPrefix(s.Docs, "https://") || len(s.Evidence) == 0 ||
				!slices.Contains([]string{"high", "medium", "low"}, s.Confidence) {
				t.Error("title, docs, evidence and confidence must be set")
			}
			if s.TTL <= 0 || s.TTL < 2*s.Retry.Window {
				t.Errorf("TTL %v is less than twice the retry window %v", s.TTL, s.Retry.Window)
			}
			if s.Retry.Automatic != (len(s.Retry.On) > 0) || s.Retry.Automatic != (s.Retry.Window > 0) {
				t.Error("a provider that retries has a window and statuses, another has none")
			}
			if s.InFlightStatus == 0 && s.Retry.Automatic && !s.Retry.OnStatus(503) {
				t.Error("503 is not retried: needs an in-flight status")
			}
			if s.Own {
				t.Error("is no own provider")
			}
			c := compile(t, s)
			d := signed(t, c, "evt_A/1")
			if !c.IsDelivery(d.Method) {
				t.Errorf("%s is not a delivery", d.Method)
			}
			if err := c.CheckHeaders(d.Header); err != nil {
				t.Error(err)
			}
			keys := []provider.Key{key(t, c, secretOf(s.ID))}
			if err := c.Verify(&d, keys, now, 0); err != nil {
				t.Error(err)
			}
			id, err := c.Identify(&d)
			if err != nil || id.Parts[len(id.Parts)-1] != "evt_A/1" {
				t.Errorf("identity %v, %v", id, err)
			}
			if id.Type == "" {
				t.Error("example has no type")
			}
			if json.Valid(d.Body) == strings.Contains(d.Header.Get("Content-Type"), "form") {
				t.Error("example's body is not what its content type says")
			}
			if name, _, ok := c.Handshake(&d); ok {
				t.Errorf("example is a handshake %s", name)
			}
			d.Body = append(slices.Clone(d.Body), '\n')
			if err := c.Verify(&d, keys, now, 0); !errors.Is(err, provider.ErrSignatureMismatch) {
				t.Errorf("tampered: %v", err)
			}
		})
	}
	if _, ok := provider.Lookup("nobody"); ok {
		t.Error("found nobody")
	}
}

func TestCatalogueFacts(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		id           string
		ttl, timeout time.Duration
		retries      bool
		hashSafe     bool
		maxBody      int64
	}{
		{"stripe", 7 * day, 0, true, true, 0},
		{"github", 4 * day, 10 * time.Second, false, true, 25 << 20},
		{"shopify", 3 * day, 5 * time.Second, true, false, 0},
		{"svix", 3 * day, 15 * time.Second, true, false, 0},
		{"standard-webhooks", 544210 * time.Second, 15 * time.Second, true, false, 0},
	} {
		s := lookup(t, tt.id)
		if s.TTL != tt.ttl || s.ResponseTimeout != tt.timeout || s.Retry.Automatic != tt.retries ||
			s.BodyHashSafe != tt.hashSafe || s.MaxBody != tt.maxBody {
			t.Errorf("%s: %v %v %v %v %v", tt.id, s.TTL, s.ResponseTimeout, s.Retry.Automatic, s.BodyHashSafe, s.MaxBody)
		}
	}
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
