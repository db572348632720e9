package postgres

import (
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestProvision(t *testing.T) {
	t.Setenv("WEBHOOK_DEDUP_TEST_POSTGRES", "postgres://user:s3cret@db.example.com:6432/shop?sslmode=disable")
	s := &Store{DSN: "{env.WEBHOOK_DEDUP_TEST_POSTGRES}", Table: "hooks.events", MaxConnections: 3}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	c := s.config.ConnConfig
	if c.Host != "db.example.com" || c.Port != 6432 || c.User != "user" || c.Password != "s3cret" || c.Database != "shop" || s.config.MaxConns != 3 {
		t.Errorf("configuration %+v", c)
	}
	if c.ConnectTimeout != connectTimeout || c.RuntimeParams["application_name"] == "" {
		t.Errorf("connect timeout %s, parameters %v", c.ConnectTimeout, c.RuntimeParams)
	}
	if s.table != `"hooks"."events"` {
		t.Errorf("table %s", s.table)
	}
	if id := s.Identity(); strings.Contains(id, "s3cret") || strings.Contains(id, "example") || !strings.HasPrefix(id, "postgres:") {
		t.Errorf("identity %q", id)
	}
}

func TestIdentity(t *testing.T) {
	off := false
	seen := map[string]int{}
	for i, s := range []Store{
		{DSN: "postgres://a"}, {DSN: "postgres://b"}, {DSN: "postgres://a/x"}, {DSN: "postgres://u:x@a"}, {DSN: "postgres://u:y@a"},
		{DSN: "postgres://a", Table: "p"}, {DSN: "postgres://a", MaxConnections: 2}, {DSN: "postgres://a", Create: &off},
	} {
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		id := s.Identity()
		if other, twice := seen[id]; twice {
			t.Errorf("configurations %d and %d share one identity", other, i)
		}
		seen[id] = i
	}
	on := true
	a, b := Store{DSN: "postgres://a"}, Store{DSN: "postgres://a", Table: "webhook_dedup_events", MaxConnections: 10, Create: &on}
	a.Provision(caddy.Context{})
	b.Provision(caddy.Context{})
	if a.Identity() != b.Identity() {
		t.Error("the defaults spelled out are another store")
	}
}

func TestBadConfiguration(t *testing.T) {
	const secret = "s3cret"
	t.Setenv("WEBHOOK_DEDUP_TEST_EMPTY", "")
	t.Setenv("WEBHOOK_DEDUP_TEST_PLAIN", secret)
	for want, all := range map[string][]Store{
		"dsn is missing":                     {{}},
		"{env.WEBHOOK_DEDUP_TEST_EMPTY}":     {{DSN: "{env.WEBHOOK_DEDUP_TEST_EMPTY}"}, {DSN: "postgres://a", Table: "{env.WEBHOOK_DEDUP_TEST_EMPTY}"}},
		"{env.WEBHOOK_DEDUP_TEST_NOT_SET}":   {{DSN: "{env.WEBHOOK_DEDUP_TEST_NOT_SET}"}},
		"allowed are {env.<name>}":           {{DSN: "postgres://user:{s3cret}@host"}},
		"dsn cannot be used":                 {{DSN: "{env.WEBHOOK_DEDUP_TEST_PLAIN}"}, {DSN: "mysql://u:s3cret@h"}, {DSN: "postgres://user:s3cret%zz@host"}, {DSN: "postgres://user:s3cret@host:port/x"}, {DSN: "user=u password='s3cret"}, {DSN: "postgres://u:s3cret@h/d?sslmode=s3cret"}, {DSN: "postgres://u:s3cret@h/d?sslrootcert=/does/not/exist&sslmode=verify-full"}},
		"describe_exec cannot be used":       {{DSN: "postgres://u:s3cret@h/d?default_query_exec_mode=describe_exec"}},
		"is no name of a table":              {{DSN: "postgres://u:s3cret@h", Table: "a b"}},
		"max_connections is -1; allowed are": {{DSN: "postgres://u:s3cret@h", MaxConnections: -1}},
	} {
		for _, s := range all {
			err := s.Provision(caddy.Context{})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%q, table %q: %v, want %q", s.DSN, s.Table, err, want)
			}
		}
	}
}

func TestCaddyfile(t *testing.T) {
	var s Store
	text := "postgres {\n\tdsn {env.DSN}\n\ttable hooks.events\n\tmax_connections 4\n\tcreate off\n}"
	err := s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
	if err != nil || s.DSN != "{env.DSN}" || s.Table != "hooks.events" || s.MaxConnections != 4 || s.Create == nil || *s.Create {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"postgres postgres://u:s3cret@h":              "in a block",
		"postgres {\n\tpostgres://u:s3cret@h\n}":      "behind dsn",
		"postgres {\n\tpassword=s3cret\n}":            "behind dsn",
		"postgres {\n\tnds postgres://u:s3cret@h\n}":  `unrecognized subdirective "nds"; allowed are dsn, table, max_connections, create`,
		"postgres {\n\tdsn\n}":                        "takes one argument",
		"postgres {\n\tdsn host=h password=s3cret\n}": "quote it if it has spaces",
		"postgres {\n\tdsn postgres://h s3cret\n}":    "takes one argument",

		"postgres {\n\tdsn a\n\tdsn b\n}":       "already set",
		"postgres {\n\ttable \"\"\n}":           "empty",
		"postgres {\n\ttable a b\n}":            "takes one argument",
		"postgres {\n\tmax_connections none\n}": "numbers from 1",
		"postgres {\n\tmax_connections 0\n}":    "numbers from 1",
		"postgres {\n\tcreate maybe\n}":         "allowed are on, off",
	} {
		err := new(Store).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestText(t *testing.T) {
	for _, s := range []string{"", "evt_1", "ä b", "\x00", "a\x00\xff", "\uFFFD", "\xef\xbf", "\U0010F700", "\U0010F7FFx\xff", "\U0010F800"} {
		text := toText(s)
		if got := fromText(text); got != s || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%q became %q, then %q", s, text, got)
		}
	}
	if text := toText("plain ä\uFFFD"); text != "plain ä\uFFFD" {
		t.Errorf("became %q", text)
	}
	property := func(b []byte) bool {
		text := toText(string(b))
		return fromText(text) == string(b) && utf8.ValidString(text) && !strings.Contains(text, "\x00")
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
