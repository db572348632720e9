package webhookdedup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// TestNothingSecretIsToldAnywhere plants secrets, signatures, tokens and bodies, makes every kind of delivery and
// failure happen, and looks for what was planted in each log at debug level, in metrics, in the admin API's answers,
// /config/, the commands' output and the answers to the provider. Logs are filtered as examples/logs has it: Caddy
// itself writes request headers to them.
func TestNothingSecretIsToldAnywhere(t *testing.T) {
	const (
		stripeSecret = "whsec_PLANTED-stripe-secret"
		oldSecret    = "whsec_PLANTED-old-secret"
		tokenSecret  = "PLANTED-token-secret"
		tenantSecret = "PLANTED-tenant-secret"
		redisSecret  = "PLANTED-redis-secret"
		bodyText     = "PLANTED-body-text"
	)
	planted := []string{"PLANTED"} // and every signature that is sent or would have been right
	sum := func(secret, text string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
	redis := testredis.Start(t, "--requirepass", redisSecret)
	for name, value := range map[string]string{"PLANTED_STRIPE": stripeSecret, "PLANTED_OLD": oldSecret, "PLANTED_TOKEN": tokenSecret,
		"PLANTED_TENANT": tenantSecret, "PLANTED_REDIS": "redis://:" + redisSecret + "@" + redis.Addr} {
		t.Setenv(strings.ToLower(name), value)
	}
	example, err := os.ReadFile("examples/logs/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, _ := strings.Cut(string(example), "(private) {")
	snippet, _, ok := strings.Cut(snippet, "\n}\n")
	if !ok {
		t.Fatal("examples/logs has no snippet (private)")
	}

	a := newApp(t, nil)
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, app: a, socket: filepath.Join(dir, "s"), log: filepath.Join(dir, "log")}
	admin := filepath.Join(dir, "admin")
	guard := func(name, secret, more string) string {
		return "handle /" + name + " {\nwebhook_dedup " + name + " {\n" + secret + "\n" + more + "\n}\nmisbehave " + name + "\nreverse_proxy " + a.Listener.Addr().String() + "\n}\n"
	}
	config, err := adapt("(private) {" + snippet + "\n}\n{\nadmin unix/" + admin + "\nauto_https off\npersist_config off\nmetrics\ngrace_period 2s\n" +
		"log default {\noutput file " + s.log + "\nlevel DEBUG\nimport private\n}\n" +
		"webhook_dedup {\nstore redis {\nurl {env.planted_redis}\n}\n" +
		"provider tokened {\nsignature token {\nheader X-Gitlab-Token\n}\nid header X-Gitlab-Event-UUID\n}\n}\n}\n" +
		"http://hooks.example.com {\nbind unix/" + s.socket + "\nlog {\noutput file " + s.log + ".access\nlevel DEBUG\nimport private\n}\n" +
		guard("stripe", "secret {env.planted_stripe} {env.planted_old}", "duplicate replay\nmax_body 4KiB\nstore_timeout 300ms") +
		guard("tokened", "secret {env.planted_token}", "") +
		guard("github", "secret {http.request.header.X-Tenant-Secret}", "on_store_error pass\nmode observe") +
		"handle /dead {\nwebhook_dedup stripe {\nsecret {env.planted_stripe}\n}\nreverse_proxy 127.0.0.1:1\n}\n" +
		"handle_errors {\nrespond \"{err.message} {err.status_code} {http.error}\"\n}\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { caddy.Stop() })

	var told bytes.Buffer // to the provider, to the operator
	tell := func(g got) {
		fmt.Fprintln(&told, g.status, g.header, g.body)
	}
	stripe := func(path, id, secret string) *http.Request {
		at := time.Now()
		body := fmt.Sprintf(`{"id":%q,"type":"x","data":%q}`, id, bodyText)
		r := stripeRequest(t, body, secret, at)
		r.URL.Path = path
		content := fmt.Sprintf("%d.%s", at.Unix(), body)
		planted = append(planted, sum(secret, content), sum(stripeSecret, content), sum(oldSecret, content), sum("", content))
		return r
	}
	tokened := func(token string) *http.Request {
		r, err := http.NewRequest(http.MethodPost, "http://hooks.example.com/tokened", strings.NewReader(bodyText))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Gitlab-Token": {token}, "X-Gitlab-Event-Uuid": {"uuid-1"}, "X-Telegram-Bot-Api-Secret-Token": {token}}
		return r
	}
	github := func() *http.Request {
		r := signed(t, "github", &provider.Delivery{Method: http.MethodPost, Body: []byte(`{"data":"` + bodyText + `"}`),
			Header: http.Header{"X-Github-Delivery": {"guid-1"}, "X-Github-Event": {"push"}}}, tenantSecret, time.Now())
		planted = append(planted, strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
		r.Header.Set("X-Tenant-Secret", tenantSecret)
		r.URL.Path = "/github"
		return r
	}
	everything := func() {
		for range 2 { // the second ones are duplicates, or retries
			tell(s.send(stripe("/stripe", "evt_1", stripeSecret)))
			tell(s.send(stripe("/stripe", "evt_2", oldSecret)))
			tell(s.send(stripe("/dead", "evt_3", stripeSecret)))
			tell(s.send(tokened(tokenSecret)))
			tell(s.send(github()))
		}
		tell(s.send(stripe("/stripe", "evt_forged", "PLANTED-wrong-secret")))
		tell(s.send(tokened("PLANTED-wrong-token")))
		large := stripe("/stripe", "evt_large", stripeSecret)
		large.Body, large.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(bodyText, 1000))), -1
		tell(s.send(large))
		cut := stripe("/stripe", "evt_cut", stripeSecret)
		cut.Method = http.MethodDelete
		tell(s.send(cut))
	}
	adminClient := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", admin)
	}}}
	t.Cleanup(adminClient.CloseIdleConnections)
	askAll := func() {
		key := url.PathEscape(":stripe:hooks.example.com/stripe:evt_1")
		for _, path := range []string{"/config/", "/metrics", "/webhook_dedup/events", "/webhook_dedup/events/" + key, "/webhook_dedup/events/none",
			"/webhook_dedup/stats", "/webhook_dedup/deliveries?limit=1000", "/debug/vars"} {
			res, err := adminClient.Get("http://127.0.0.1" + path)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&told, path, res.StatusCode, res.Header)
			io.Copy(&told, res.Body)
			res.Body.Close()
		}
		for _, args := range [][]string{{"list"}, {"list", "--json"}, {"inspect", "evt_1"}, {"stats"}, {"watch", "--for", "100ms"}, {"forget", "evt_2"}} {
			got := runCommand(t, t.Context(), "", append(args, "--address", "unix/"+admin)...)
			told.WriteString(got.out + got.stderr)
		}
	}

	everything()
	a.answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	everything()
	askAll()
	redis.Pause()
	everything()
	redis.Resume()
	redis.Kill()
	everything()
	askAll()
	redis.Restart() // for what the outage left behind
	if !pendingWork.wait(20 * time.Second) {
		t.Error("background work did not end")
	}

	logs := s.logs(`"result":"processed"`, `"result":"failed"`, `"result":"invalid_signature"`, `"result":"store_error"`, `"result":"too_large"`,
		`"result":"not_allowed"`, `"msg":"upstream roundtrip"`, `"msg":"handled request"`, `"logger":"http.handlers.reverse_proxy"`)
	for name, text := range map[string]string{"a log": logs, "an answer": told.String()} {
		for _, secret := range planted {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%q is in %s: …%s…", secret, name, text[max(0, i-300):min(len(text), i+100)])
				break
			}
		}
	}
	for _, want := range []string{"caddy_webhook_dedup_deliveries_total", `"event_id":"evt_1"`, "{env.planted_stripe}", "answers in", "FAILED"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the answers lack %s, so they were not looked through", want)
		}
	}
}
