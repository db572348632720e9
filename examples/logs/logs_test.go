package logs

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/webhook-dedup/caddy-webhook-dedup"
)

// TestTokensAreInNoLog runs the example as it stands, with debug lines on, and looks for what the requests' headers hold.
func TestTokensAreInNoLog(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_DATA_HOME", dir)
	for name, value := range map[string]string{"LOG_DIR": dir, "DATA_DIR": dir, "SITE": "http://" + address,
		"APP": app.Listener.Addr().String(), "STRIPE_SECRET": "whsec_x", "GITHUB_SECRET": "y"} {
		t.Setenv(name, value)
	}
	text, err := os.ReadFile("Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	// With debug lines; and without an admin endpoint, whose port may be taken.
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(strings.Replace(string(text), "\n{\n", "\n{\nadmin off\ndebug\npersist_config off\n", 1)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	send := func(method, path string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"X-Gitlab-Token", "X-Telegram-Bot-Api-Secret-Token", "Stripe-Signature", "X-Hub-Signature-256", "Webhook-Signature"} {
			r.Header.Set(name, "PLANTED")
		}
		r.Header.Set("User-Agent", "example/1.0")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	for _, path := range []string{"/stripe", "/github", "/"} {
		send(http.MethodPost, path) // refused
		send(http.MethodGet, path)  // passed on
	}
	app.Close()
	send(http.MethodGet, "/stripe") // answered 502, with lines about it

	deadline := time.Now().Add(5 * time.Second)
	for {
		var logs string
		for _, name := range []string{"caddy.log", "access.log"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			logs += string(b)
		}
		if strings.Contains(logs, "PLANTED") {
			t.Fatalf("a header is in a log:\n%s", logs)
		}
		missing := ""
		for _, want := range []string{`"result":"invalid_signature"`, `"user_agent":"example/1.0"`, `"msg":"upstream roundtrip"`, `"status":502`,
			`"webhook_dedup":{"provider":"stripe"`, "http.log.error"} {
			if !strings.Contains(logs, want) {
				missing = want
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the logs lack %s:\n%s", missing, logs)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
