package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestProvision(t *testing.T) {
	t.Setenv("WEBHOOK_DEDUP_TEST_REDIS", "rediss://user:s3cret@redis.example.com:6380/4")
	s := &Store{URL: "{env.WEBHOOK_DEDUP_TEST_REDIS}"}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	o := s.options
	if o.Addrs[0] != "redis.example.com:6380" || o.Username != "user" || o.Password != "s3cret" || o.DB != 4 || o.TLSConfig == nil {
		t.Errorf("options %+v", o)
	}
	if s.settings.Prefix != "webhook_dedup" {
		t.Errorf("prefix %q", s.settings.Prefix)
	}
	if id := s.Identity(); strings.Contains(id, "s3cret") || strings.Contains(id, "example") || !strings.HasPrefix(id, "redis:") {
		t.Errorf("identity %q", id)
	}
}

func TestIdentity(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []Store{
		{URL: "redis://a"}, {URL: "redis://b"}, {URL: "redis://a/1"}, {URL: "redis://:x@a"}, {URL: "redis://:y@a"},
		{URL: "redis://a", Prefix: "p"}, {URL: "redis://a", Prefix: "q"},
	} {
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		id := s.Identity()
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q share one identity", other, s.URL)
		}
		seen[id] = s.URL
	}
	a, b := Store{URL: "redis://a"}, Store{URL: "redis://a", Prefix: "webhook_dedup"}
	a.Provision(caddy.Context{})
	b.Provision(caddy.Context{})
	if a.Identity() != b.Identity() {
		t.Error("the default prefix spelled out is another store")
	}
}

func TestBadURLs(t *testing.T) {
	const secret = "s3cret"
	t.Setenv("WEBHOOK_DEDUP_TEST_EMPTY", "")
	t.Setenv("WEBHOOK_DEDUP_TEST_PLAIN", secret)
	for url, want := range map[string]string{
		"":                                        "url or address is missing",
		"{env.WEBHOOK_DEDUP_TEST_EMPTY}":          "{env.WEBHOOK_DEDUP_TEST_EMPTY}",
		"{env.WEBHOOK_DEDUP_TEST_NOT_SET}":        "{env.WEBHOOK_DEDUP_TEST_NOT_SET}",
		"{env.WEBHOOK_DEDUP_TEST_PLAIN}":          "allowed are redis://, rediss://, unix://",
		"redis://user:{s3cret}@host":              "allowed are {env.<name>}",
		"http://user:s3cret@host":                 "allowed are redis://, rediss://, unix://",
		"s3cret:x":                                "allowed are",
		"redis://user:s3cret#x@host":              "percent-encode",
		"redis://user:s3cret/x@host":              "percent-encode",
		"redis://user:s3cret@host:port":           "percent-encode",
		"redis://user:s3cret%zz@host":             "percent-encode",
		"redis://user:s3cret@host/s3cret":         "number of a database",
		"redis://user:s3cret@host/1/2":            "number of a database",
		"redis://user:s3cret@host?s3cret=1":       "number of a database",
		"redis://user:s3cret@host?read_timeout=x": "number of a database",
		"unix://": "number of a database",
	} {
		err := (&Store{URL: url}).Provision(caddy.Context{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	if err := (&Store{URL: "redis://h", Prefix: "{env.WEBHOOK_DEDUP_TEST_EMPTY}"}).Provision(caddy.Context{}); err == nil {
		t.Error("an empty prefix passed")
	}
}

func TestWaitsAreBounded(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":                  waitDefault,
		"?read_timeout=-1":  waitDefault,
		"?read_timeout=-2":  waitDefault,
		"?read_timeout=0":   waitDefault,
		"?read_timeout=2s":  2 * time.Second,
		"?read_timeout=60s": waitMax,
	} {
		s := &Store{URL: "redis://h" + query}
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if o := s.options; o.ReadTimeout != want || o.MaxRetries != -1 || !o.ContextTimeoutEnabled || o.DialTimeout != waitDefault {
			t.Errorf("%q: read timeout %s, want %s; %d retries", query, o.ReadTimeout, want, o.MaxRetries)
		}
	}
}

func TestCaddyfile(t *testing.T) {
	var s Store
	text := "redis {\n\turl {env.REDIS_URL}\n\tprefix shop\n}"
	if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err != nil || s.URL != "{env.REDIS_URL}" || s.Prefix != "shop" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"redis redis://u:s3cret@h":                                "in a block",
		"redis {\n\tredis://u:s3cret@h\n}":                        "behind url",
		"redis {\n\tulr redis://u:s3cret@h\n}":                    `unrecognized subdirective "ulr"; allowed are url, address`,
		"redis {\n\turl\n}":                                       "takes one argument",
		"redis {\n\turl redis://u:s3cret@h redis://u:s3cret@i\n}": "takes one argument",
		"redis {\n\turl redis://u:s3cret@h\n\turl redis://i\n}":   "already set",
		"redis {\n\turl \"\"\n}":                                  "empty",
		"redis {\n\tprefix\n}":                                    "takes one argument",
	} {
		err := new(Store).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
