//go:build unix

package redis

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
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

// TestIdentity: whatever differs between two configurations keeps their stores apart.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	certs := [2]testredis.Certificates{testredis.NewCertificates(t), testredis.NewCertificates(t)}
	one, sentinels := []string{"a:1"}, []string{"a:1", "b:1"}
	seen := map[string]int{}
	for i, s := range []Store{
		{URL: "redis://a"}, {URL: "redis://b"}, {URL: "redis://a/1"}, {URL: "redis://:x@a"}, {URL: "redis://:y@a"},
		{URL: "redis://a", Prefix: "p"}, {URL: "redis://a", Prefix: "q"}, {URL: "redis://a", Cluster: true},
		{URL: "redis://a", Replicas: replicate(1, "1s")}, {URL: "redis://a", Replicas: replicate(1, "2s")}, {URL: "redis://a", Replicas: replicate(2, "1s")},
		{Address: one}, {Address: []string{"a:2"}}, {Address: []string{"/a"}}, {Address: one, Username: "u"}, {Address: one, Password: "p"}, {Address: one, DB: "1"},
		{Address: one, TLS: &TLS{}}, {Address: one, TLS: &TLS{ServerName: "n"}}, {Address: one, TLS: &TLS{CA: certs[0].CA}}, {Address: one, TLS: &TLS{CA: certs[1].CA}},
		{Address: one, TLS: &TLS{Cert: certs[0].Cert, Key: certs[0].Key}}, {Address: one, TLS: &TLS{Cert: certs[1].Cert, Key: certs[1].Key}},
		{Address: sentinels, Cluster: true}, {Address: sentinels, Sentinel: "m"}, {Address: sentinels, Sentinel: "n"},
		{Address: sentinels, Sentinel: "m", SentinelUsername: "u"}, {Address: sentinels, Sentinel: "m", SentinelPassword: "p"},
		{Address: sentinels, Sentinel: "m", Password: "p"},
	} {
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(i, err)
		}
		id := s.Identity()
		if other, twice := seen[id]; twice {
			t.Errorf("the stores %d and %d share one identity", other, i)
		}
		seen[id] = i
	}
	identity := func(s Store) string {
		t.Helper()
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		return s.Identity()
	}
	if identity(Store{URL: "redis://a"}) != identity(Store{URL: "redis://a", Prefix: "webhook_dedup", DB: "0"}) {
		t.Error("the defaults spelled out are another store")
	}
	// A file whose content was replaced is another store; where it lies does not matter.
	moved := filepath.Join(dir, "ca.pem")
	text, err := os.ReadFile(certs[0].CA)
	if err == nil {
		err = os.WriteFile(moved, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if identity(Store{Address: one, TLS: &TLS{CA: moved}}) != identity(Store{Address: one, TLS: &TLS{CA: certs[0].CA}}) {
		t.Error("the same authority in another file is another store")
	}
}

// TestPlaceholders: every text may be one.
func TestPlaceholders(t *testing.T) {
	certs := testredis.NewCertificates(t)
	for name, value := range map[string]string{
		"ADDRESS": "one:26379, two:26379", "USER": "u", "PASSWORD": "p{env.NOT_READ_TWICE}", "DB": "3", "MASTER": "m", "SENTINEL_USER": "su",
		"SENTINEL_PASSWORD": "sp", "PREFIX": "shop", "CA": certs.CA, "CERT": certs.Cert, "KEY": certs.Key, "NAME": "redis.test",
	} {
		t.Setenv("WEBHOOK_DEDUP_TEST_"+name, value)
	}
	env := func(name string) string { return "{env.WEBHOOK_DEDUP_TEST_" + name + "}" }
	s := &Store{
		Address: []string{env("ADDRESS")}, Username: env("USER"), Password: env("PASSWORD"), DB: env("DB"), Sentinel: env("MASTER"),
		SentinelUsername: env("SENTINEL_USER"), SentinelPassword: env("SENTINEL_PASSWORD"), Prefix: env("PREFIX"),
		TLS: &TLS{CA: env("CA"), Cert: env("CERT"), Key: env("KEY"), ServerName: env("NAME")},
	}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	o := s.options
	if !slices.Equal(o.Addrs, []string{"one:26379", "two:26379"}) || o.Username != "u" || o.Password != "p{env.NOT_READ_TWICE}" || o.DB != 3 ||
		o.MasterName != "m" || o.SentinelUsername != "su" || o.SentinelPassword != "sp" || s.settings.Prefix != "shop" ||
		o.TLSConfig.RootCAs == nil || len(o.TLSConfig.Certificates) != 1 || o.TLSConfig.ServerName != "redis.test" {
		t.Errorf("options %+v", o)
	}
}

// TestContradictions: every error says what is allowed, and none repeats a value.
func TestContradictions(t *testing.T) {
	const secret = "s3cret"
	certs := testredis.NewCertificates(t)
	one, two := []string{"redis.example.com:6379"}, []string{"a:26379", "b:26379"}
	for i, c := range []struct {
		store Store
		want  string
	}{
		{Store{}, "url or address is missing"},
		{Store{URL: "redis://:s3cret@h", Address: one}, "url and address exclude each other"},
		{Store{URL: "redis://h", Password: secret}, "belong into the url"},
		{Store{URL: "redis://h", DB: "2"}, "belong into the url"},
		{Store{URL: "redis://h", Sentinel: "m"}, "sentinel needs address"},
		{Store{URL: "redis://h/2", Cluster: true}, "database other than 0"},
		{Store{URL: "unix:///run/redis", Cluster: true}, "nor a socket"},
		{Store{URL: "redis://h", TLS: &TLS{}}, "rediss://"},
		{Store{URL: "rediss://h?skip_verify=true"}, "skip_verify is not allowed"},
		{Store{Address: two}, "several with cluster or with sentinel"},
		{Store{Address: two, Cluster: true, DB: "1"}, "database 0 only"},
		{Store{Address: two, Cluster: true, Sentinel: "m"}, "exclude each other"},
		{Store{Address: one, SentinelPassword: secret}, "need sentinel"},
		{Store{Address: []string{"redis://:s3cret@h"}}, "a URL stands behind url"},
		{Store{Address: []string{"s3cret"}}, "host:port"},
		{Store{Address: []string{"h:s3cret"}}, "host:port"},
		{Store{Address: []string{"h:70000"}}, "host:port"},
		{Store{Address: []string{":6379"}}, "host:port"},
		{Store{Address: []string{"/run/redis"}, Cluster: true}, "host:port"},
		{Store{Address: one, DB: secret}, "allowed are 0, 1, 2"},
		{Store{Address: one, DB: "-1"}, "allowed are 0, 1, 2"},
		{Store{Address: one, Password: "{s3cret}"}, "password: something in braces"},
		{Store{Address: one, Password: "{env.WEBHOOK_DEDUP_TEST_NOT_SET}"}, "password: evaluated placeholder {env.WEBHOOK_DEDUP_TEST_NOT_SET}"},
		{Store{Address: one, TLS: &TLS{CA: "/does/not/exist.pem"}}, "file of ca: open /does/not/exist.pem"},
		{Store{Address: one, TLS: &TLS{CA: certs.Key}}, "file of ca has no certificate"},
		{Store{Address: one, TLS: &TLS{Cert: certs.Cert}}, "cert and key are needed together"},
		{Store{Address: one, TLS: &TLS{Cert: certs.Cert, Key: "/does/not/exist.pem"}}, "the key of cert"},
		{Store{Address: one, TLS: &TLS{Cert: certs.Key, Key: certs.Cert}}, "files of cert cannot be used"},
		{Store{Address: one, Replicas: &Replicas{Timeout: 1e9}}, "allowed are 1 to 100"},
		{Store{Address: one, Replicas: &Replicas{Count: 1}}, "allowed are 1ms to 4s"},
		{Store{Address: one, Replicas: replicate(1, "5s")}, "allowed are 1ms to 4s"},
	} {
		err := c.store.Provision(caddy.Context{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%d: %v, want %q", i, err, c.want)
		}
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
	check := func(s *Store, want time.Duration) {
		t.Helper()
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if o := s.options; o.ReadTimeout != want || o.MaxRetries != -1 || !o.ContextTimeoutEnabled || o.DialTimeout != waitDefault {
			t.Errorf("%q: read timeout %s, want %s; %d retries", s.URL, o.ReadTimeout, want, o.MaxRetries)
		}
	}
	for query, want := range map[string]time.Duration{
		"":                  waitDefault,
		"?read_timeout=-1":  waitDefault,
		"?read_timeout=-2":  waitDefault,
		"?read_timeout=0":   waitDefault,
		"?read_timeout=2s":  2 * time.Second,
		"?read_timeout=60s": waitMax,
	} {
		check(&Store{URL: "redis://h" + query}, want)
		check(&Store{URL: "redis://h" + query, Cluster: true}, want)
	}
	check(&Store{Address: []string{"h:1"}, Sentinel: "m"}, waitDefault)
	check(&Store{URL: "redis://h", Replicas: replicate(1, "4s")}, waitMax)
}

func TestCaddyfile(t *testing.T) {
	for text, want := range map[string]Store{
		"redis {\n\turl {env.REDIS_URL}\n\tprefix shop\n}": {URL: "{env.REDIS_URL}", Prefix: "shop"},
		`redis {
			address one:26379 two:26379
			address three:26379
			username app
			password {env.P}
			db 2
			tls {
				ca /ca.pem
				cert /cert.pem /key.pem
				server_name redis
			}
			sentinel events
			sentinel_username watch
			sentinel_password {env.S}
			replicas 2 200ms
		}`: {
			Address: []string{"one:26379", "two:26379", "three:26379"}, Username: "app", Password: "{env.P}", DB: "2",
			TLS:      &TLS{CA: "/ca.pem", Cert: "/cert.pem", Key: "/key.pem", ServerName: "redis"},
			Sentinel: "events", SentinelUsername: "watch", SentinelPassword: "{env.S}", Replicas: replicate(2, "200ms"),
		},
		"redis {\n\taddress a:1\n\tcluster\n\ttls\n}": {Address: []string{"a:1"}, Cluster: true, TLS: &TLS{}},
	} {
		var s Store
		if err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
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
		"redis {\n\tpassword s3cret s3cret\n}":                    "takes one argument",
		"redis {\n\taddress\n}":                                   "takes one argument or more",
		"redis {\n\tcluster s3cret:1\n}":                          "stand behind address",
		"redis {\n\ttls s3cret\n}":                                "in a block",
		"redis {\n\ttls\n\ttls\n}":                                "already set",
		"redis {\n\ttls {\n\t\tinsecure_skip_verify\n\t}\n}":      "allowed in tls are ca, cert, server_name",
		"redis {\n\ttls {\n\t\tcert s3cret\n\t}\n}":               "two arguments",
		"redis {\n\ttls {\n\t\tca s3cret s3cret\n\t}\n}":          "takes one argument",
		"redis {\n\treplicas 1\n}":                                "as in replicas 1 200ms",
		"redis {\n\treplicas s3cret 1s\n}":                        "as in replicas 1 200ms",
		"redis {\n\treplicas 1 s3cret\n}":                         "as in replicas 1 200ms",
		"redis {\n\treplicas 0 1s\n}":                             "allowed are 1 to 100",
		"redis {\n\treplicas 1 1h\n}":                             "allowed are 1ms to 4s",
		"redis {\n\treplicas 1 1s\n\treplicas 1 1s\n}":            "already set",
	} {
		err := new(Store).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
