package chaos

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// Every wrong value is an error at load, which caddy validate shows without network or store. What the Caddyfile alone
// shows to be wrong is named with file and line.
func TestMisconfiguration(t *testing.T) {
	t.Parallel()
	const site = "http://:9 {\n%s\nreverse_proxy localhost:1\n}\n"
	const good = "secret s3cr3t-value"
	stripe := func(lines ...string) string {
		return fmt.Sprintf(site, "webhook_dedup stripe {\n"+strings.Join(lines, "\n")+"\n}")
	}
	for name, c := range map[string]struct {
		site    string
		app     string // lines of the global block
		line    string // the line at fault, as written; empty where it takes more than the Caddyfile to know
		message string // what else the message must hold
	}{
		"no secret":              {site: stripe("tolerance 5m"), line: "webhook_dedup stripe {", message: "secret"},
		"secret without a value": {site: stripe("secret"), line: "secret"},
		"no provider":            {site: fmt.Sprintf(site, "webhook_dedup {\n"+good+"\n}"), line: "webhook_dedup {"},
		"unknown provider":       {site: fmt.Sprintf(site, "webhook_dedup strype {\n"+good+"\n}"), line: "webhook_dedup strype {", message: "strype"},
		"unknown subdirective":   {site: stripe(good, "tolerence 5m"), line: "tolerence 5m", message: "tolerence"},
		"ttl of nothing":         {site: stripe(good, "ttl 0"), line: "ttl 0", message: "ttl"},
		"ttl below nothing":      {site: stripe(good, "ttl -1h"), line: "ttl -1h", message: "ttl"},
		"ttl no duration":        {site: stripe(good, "ttl soon"), line: "ttl soon", message: "soon"},
		"ttl twice as long":      {site: stripe(good, "ttl 1d 2d"), line: "ttl 1d 2d"},
		"duplicate not 2xx":      {site: stripe(good, "duplicate 500"), line: "duplicate 500", message: "2"},
		"acknowledge no status":  {site: stripe(good, "acknowledge 99"), line: "acknowledge 99"},
		"acknowledge a failure":  {site: stripe(good, "acknowledge 5xx"), line: "acknowledge 5xx"},
		"unknown mode":           {site: stripe(good, "mode dry"), line: "mode dry", message: "observe"},
		"unknown in_flight":      {site: stripe(good, "in_flight never"), line: "in_flight never", message: "reject"},
		"unknown on_missing_id":  {site: stripe(good, "on_missing_id drop"), line: "on_missing_id drop", message: "hash"},
		"unknown on_store_error": {site: stripe(good, "on_store_error ignore"), line: "on_store_error ignore", message: "pass"},
		"max_body no size":       {site: stripe(good, "max_body big"), line: "max_body big", message: "big"},
		"unknown id source":      {site: stripe(good, "id cookie session"), line: "id cookie session", message: "cookie"},
		"unknown store":          {site: stripe(good, "store cassandra"), line: "store cassandra", message: "cassandra"},
		"unknown global store":   {site: stripe(good), app: "store cassandra", line: "store cassandra", message: "cassandra"},
		"unknown global option":  {site: stripe(good), app: "environmnt production", line: "environmnt production", message: "environmnt"},
		"unknown store option":   {site: stripe(good), app: "store file {\npth /tmp/x\n}", line: "pth /tmp/x", message: "pth"},
		"redis url of a website": {site: stripe(good), app: "store redis {\nurl http://localhost/\n}", message: "redis"},
		"brace in content": {
			site: fmt.Sprintf(site, "webhook_dedup stripe {\n"+good+"\nsignature hmac-sha256 {\nheader X-Sig\ncontent \"{bod}\"\n}\n}"),
			line: "webhook_dedup stripe {", message: "bod",
		},
		"own provider without an id": {
			site: fmt.Sprintf(site, "webhook_dedup acme {\n"+good+"\n}"),
			app:  "provider acme {\nsignature hmac-sha256 {\nheader X-Sig\n}\n}", message: "id",
		},
		"lease too short":         {site: stripe(good, "lease 2s", "store_timeout 500ms"), message: "lease"},
		"secret of an unset env":  {site: stripe("secret {env.CHAOS_UNSET}"), message: "env.CHAOS_UNSET"},
		"secret of a lost file":   {site: stripe("secret {file./nonexistent/secret}"), message: "/nonexistent/secret"},
		"one of two secrets lost": {site: stripe(good + " {env.CHAOS_UNSET}"), message: "env.CHAOS_UNSET"},
		"file in a lost folder":   {site: stripe(good), app: "store file {\npath /nonexistent/folder/events.db\n}", message: "/nonexistent/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caddy := harness.NewCaddy(t)
			text := "{\nadmin off\nauto_https off\npersist_config off\n"
			if c.app != "" {
				text += "webhook_dedup {\n" + c.app + "\n}\n"
			}
			text += "}\n" + c.site
			out, err := caddy.ValidateText(t, text)
			if err == nil {
				t.Fatalf("passes:\n%s", text)
			}
			// The last line is the verdict; before it come log lines.
			lines := strings.Split(strings.TrimSpace(out), "\n")
			verdict := lines[len(lines)-1]
			if !strings.Contains(verdict, c.message) {
				t.Errorf("%q is not in the message: %s", c.message, verdict)
			}
			if strings.Contains(out, "s3cr3t-value") {
				t.Errorf("the message holds the secret: %s", out)
			}
			if c.line != "" {
				wantLine(t, text, c.line, verdict)
			}
		})
	}
}

// wantLine fails the test unless the verdict names the file and the line at fault, or a line of the block which that
// line opens.
func wantLine(t *testing.T, caddyfile, fault, verdict string) {
	t.Helper()
	m := regexp.MustCompile(`Caddyfile\.check:(\d+)`).FindStringSubmatch(verdict)
	if m == nil {
		t.Errorf("no file and line in the message: %s", verdict)
		return
	}
	named, _ := strconv.Atoi(m[1])
	lines := strings.Split(caddyfile, "\n")
	for i, line := range lines {
		if line != fault {
			continue
		}
		last := i
		if strings.HasSuffix(fault, "{") {
			for lines[last] != "}" {
				last++
			}
		}
		if named < i+1 || named > last+1 {
			t.Errorf("line %d is named, the fault is in line %d: %s", named, i+1, verdict)
		}
		return
	}
	t.Fatalf("the test's own Caddyfile has no line %q", fault)
}

// caddy validate needs neither the network nor the store of a good configuration.
func TestValidateIsOffline(t *testing.T) {
	t.Parallel()
	caddy := harness.NewCaddy(t)
	nobody := harness.FreeAddress(t)
	file := filepath.Join(caddy.Files, "events.db")
	for name, app := range map[string]string{
		"file":  "store file {\npath " + file + "\n}",
		"redis": "store redis {\nurl redis://user:pass@" + nobody + "/3\n}",
	} {
		out, err := caddy.Validate(t, harness.Config{
			App:  app,
			Site: "webhook_dedup stripe {\nsecret s3cr3t-value\n}\nreverse_proxy " + nobody,
		})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.Contains(out, "user:pass") {
			t.Errorf("%s: the password is printed:\n%s", name, out)
		}
	}
	if matches, _ := filepath.Glob(file + "*"); len(matches) != 0 {
		t.Errorf("validate left %q behind", matches)
	}
}

// The directive stands before handle, wherever it is written: a nested proxy is not a way around it.
func TestHandleIsNoWayAround(t *testing.T) {
	t.Parallel()
	st := prepare(t, setting{})
	st.config.Site = fmt.Sprintf("handle /stripe {\nreverse_proxy %s\n}\nwebhook_dedup stripe {\nsecret %s\n}", st.ledger.Address, secret)
	st.Start(t, st.config)
	unsigned := st.provider.Request(harness.NewEvent("evt_around"))
	unsigned.Header.Del("Stripe-Signature")
	want(t, "unsigned", st.provider.Do(unsigned), 401, "invalid_signature")
	if n := st.ledger.Total(); n != 0 {
		t.Errorf("%d runs", n)
	}
}
