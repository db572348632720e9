//go:build unix

// Package examples_test runs every example of this folder: its Caddyfile is adapted, validated and loaded, and signed
// deliveries are sent through it.
package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/redis/go-redis/v9"
	webhookdedup "github.com/webhook-dedup/caddy-webhook-dedup"

	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testpostgres"
	"github.com/webhook-dedup/caddy-webhook-dedup/internal/testredis"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
	_ "github.com/webhook-dedup/caddy-webhook-dedup/stores/postgres"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"} {
		os.Setenv(name, dir)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestQuickstart(t *testing.T) {
	app := newApp(t)
	site := load(t, "quickstart", env{
		"SITE": "http://localhost:8080", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_quick",
	})
	site.wantOnce(app, delivery{url: "http://localhost:8080/", provider: catalogue(t, "stripe"), secret: "whsec_quick"})
	site.want(delivery{url: "http://localhost:8080/", provider: catalogue(t, "stripe"), secret: "another", id: "evt_forged"},
		http.StatusUnauthorized, "invalid_signature")
	app.wantRuns(1)
}

func TestStripe(t *testing.T) {
	app := newApp(t)
	site := load(t, "stripe", env{
		"SITE": "http://shop.example.com", "APP_ADDR": app.addr,
		"STRIPE_PAYMENTS_SECRET": "whsec_new", "STRIPE_PAYMENTS_SECRET_OLD": "whsec_old", "STRIPE_CONNECT_SECRET": "whsec_connect",
	})
	stripe := catalogue(t, "stripe")
	payments := delivery{url: "http://shop.example.com/stripe/payments", provider: stripe, secret: "whsec_new", id: "evt_1"}
	site.wantOnce(app, payments)
	payments.secret = "whsec_old" // its retry, during the rotation
	site.want(payments, http.StatusOK, "duplicate")

	// The same event at the other endpoint, which does not take the first one's secret.
	connect := delivery{url: "http://shop.example.com/stripe/connect", provider: stripe, secret: "whsec_new", id: "evt_1"}
	site.want(connect, http.StatusUnauthorized, "invalid_signature")
	connect.secret = "whsec_connect"
	site.wantOnce(app, connect)

	// An answer that only this endpoint takes for an acknowledgement.
	connect.id = "evt_2"
	app.answer(http.StatusConflict)
	site.want(connect, http.StatusConflict, "processed")
	site.want(connect, http.StatusOK, "duplicate")
	payments.id = "evt_2"
	site.want(payments, http.StatusConflict, "failed")
	app.answer(http.StatusOK)
	site.want(payments, http.StatusOK, "processed")

	// The rest of the site.
	if g := site.get("http://shop.example.com/cart"); g.status != http.StatusOK || g.result != "" {
		t.Errorf("the rest of the site: %d %q", g.status, g.result)
	}
	app.wantRuns(6)
}

func TestGitHub(t *testing.T) {
	app := newApp(t)
	site := load(t, "github", env{"SITE": "http://ci.example.com", "APP_ADDR": app.addr, "GITHUB_SECRET": "gh"})
	site.wantOnce(app, delivery{url: "http://ci.example.com/github", provider: catalogue(t, "github"), secret: "gh"})
}

func TestShopify(t *testing.T) {
	app := newApp(t)
	site := load(t, "shopify", env{
		"SITE": "http://app.example.com", "APP_ADDR": app.addr, "SHOPIFY_SECRET": "shpss_new", "SHOPIFY_SECRET_OLD": "shpss_old",
	})
	d := delivery{url: "http://app.example.com/shopify/orders-create", provider: catalogue(t, "shopify"), secret: "shpss_new"}
	site.wantOnce(app, d)
	d.secret = "shpss_old"
	site.want(d, http.StatusOK, "duplicate")
	app.wantRuns(1)
}

func TestOwnProvider(t *testing.T) {
	app := newApp(t)
	site := load(t, "own-provider", env{"SITE": "http://hooks.example.com", "APP_ADDR": app.addr, "ACME_SECRET": "acme"})
	d := delivery{url: "http://hooks.example.com/acme", provider: site.ownProvider("acme"), secret: "acme"}
	site.wantOnce(app, d)

	// The second part of the ID is read from the body where its header is missing, and is the same ID there.
	d.body, d.drop = []byte(`{"shop":{"id":"part-1"},"event":{"id":"evt_example","type":"order"}}`), "X-Acme-Event-Id"
	site.want(d, http.StatusOK, "duplicate")
	d.body = []byte(`{"shop":{"id":"another"},"event":{"id":"evt_example","type":"order"}}`)
	site.want(d, http.StatusOK, "processed")
	app.wantRuns(2)
}

func TestMultiTenant(t *testing.T) {
	app := newApp(t)
	site := load(t, "multi-tenant", env{
		"SITE":     "http://acme.hooks.example.com, http://globex.hooks.example.com, http://unknown.hooks.example.com",
		"APP_ADDR": app.addr, "ACME_SECRET": "whsec_acme", "GLOBEX_SECRET": "whsec_globex",
	})
	stripe := catalogue(t, "stripe")
	acme := delivery{url: "http://acme.hooks.example.com/", provider: stripe, secret: "whsec_acme"}
	globex := delivery{url: "http://globex.hooks.example.com/", provider: stripe, secret: "whsec_globex"}
	site.wantOnce(app, acme)
	site.wantOnce(app, globex) // the same event ID
	acme.secret, globex.secret = globex.secret, acme.secret
	site.want(acme, http.StatusUnauthorized, "invalid_signature")
	site.want(globex, http.StatusUnauthorized, "invalid_signature")
	for _, secret := range []string{"whsec_acme", "{tenant_secret}", "{env.ACME_SECRET}"} {
		site.want(delivery{url: "http://unknown.hooks.example.com/", provider: stripe, secret: secret},
			http.StatusUnauthorized, "invalid_signature")
	}
	app.wantRuns(2)
}

func TestRedis(t *testing.T) {
	app, server := newApp(t), testredis.Start(t)
	settings := env{
		"SITE": "http://hooks.example.com", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_redis", "REDIS_URL": server.URL(),
	}
	site := load(t, "redis", settings)
	d := delivery{url: "http://hooks.example.com/", provider: catalogue(t, "stripe"), secret: "whsec_redis"}
	site.wantOnce(app, d)

	// Another Caddy with the same Redis knows the event, one of another environment does not.
	site.stop()
	site = load(t, "redis", settings)
	site.want(d, http.StatusOK, "duplicate")
	app.wantRuns(1)
	site.stop()
	settings["ENVIRONMENT"] = "staging"
	load(t, "redis", settings).want(d, http.StatusOK, "processed")
	app.wantRuns(2)
}

func TestRedisSentinel(t *testing.T) {
	app := newApp(t)
	servers := testredis.StartSentinel(t, testredis.Auth{Password: "servers-password", SentinelPassword: "sentinels-password"})
	site := load(t, "redis-sentinel", env{
		"SITE": "http://hooks.example.com", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_redis",
		"SENTINELS": strings.Join(servers.Addrs(), ","), "SENTINEL_PASSWORD": "sentinels-password", "REDIS_PASSWORD": "servers-password",
	})
	site.wantOnce(app, delivery{url: "http://hooks.example.com/", provider: catalogue(t, "stripe"), secret: "whsec_redis"})
}

func TestRedisCluster(t *testing.T) {
	app := newApp(t)
	servers := testredis.StartCluster(t)
	for _, node := range servers.Nodes {
		client := redis.NewClient(&redis.Options{Addr: node.Addr})
		for _, setting := range []string{"masterauth", "requirepass"} {
			if err := client.ConfigSet(t.Context(), setting, "servers-password").Err(); err != nil {
				t.Fatal(err)
			}
		}
		client.Close()
	}
	site := load(t, "redis-cluster", env{
		"SITE": "http://hooks.example.com", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_redis",
		"NODES": strings.Join(servers.Addrs(), ","), "REDIS_PASSWORD": "servers-password",
	})
	site.wantOnce(app, delivery{url: "http://hooks.example.com/", provider: catalogue(t, "stripe"), secret: "whsec_redis"})
}

func TestPostgres(t *testing.T) {
	app, server := newApp(t), testpostgres.Start(t)
	site := load(t, "postgres", env{
		"SITE": "http://hooks.example.com", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_postgres", "POSTGRES_DSN": server.DSN(),
	})
	site.wantOnce(app, delivery{url: "http://hooks.example.com/", provider: catalogue(t, "stripe"), secret: "whsec_postgres"})
}

func TestPHPFastCGI(t *testing.T) {
	app := newFastCGIApp(t)
	site := load(t, "php-fastcgi", env{
		"SITE": "http://shop.example.com", "PHP_ADDR": app.addr, "ROOT": filepath.Join("php-fastcgi", "public"),
		"STRIPE_SECRET": "whsec_php",
	})
	site.wantOnce(app, delivery{url: "http://shop.example.com/webhooks/stripe", provider: catalogue(t, "stripe"), secret: "whsec_php"})
	if g := site.get("http://shop.example.com/cart"); g.status != http.StatusOK || g.result != "" {
		t.Errorf("another page: %d %q", g.status, g.result)
	}
	app.wantRuns(2)
	run := app.runs[0]
	if run.URL.Path != "/webhooks/stripe" || run.Header.Get("Webhook-Dedup-Attempt") != "1" {
		t.Errorf("the application saw %s %v", run.URL, run.Header)
	}
}

func TestObserveFirst(t *testing.T) {
	app := newApp(t)
	site := load(t, "observe-first", env{"SITE": "http://shop.example.com", "APP_ADDR": app.addr, "STRIPE_SECRET": "whsec_observe"})
	d := delivery{url: "http://shop.example.com/stripe", provider: catalogue(t, "stripe"), secret: "whsec_observe"}
	site.want(d, http.StatusOK, "observe; processed")
	site.want(d, http.StatusOK, "observe; duplicate")
	d.secret = "another"
	site.want(d, http.StatusOK, "observe; invalid_signature")
	app.wantRuns(3)
}

// TestEveryExample finds an example that no test runs, or that lacks its README.
func TestEveryExample(t *testing.T) {
	folders, err := filepath.Glob("*/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, folder := range folders {
		name := filepath.Dir(folder)
		if own, _ := filepath.Glob(filepath.Join(name, "*_test.go")); own == nil {
			names = append(names, name)
		}
		if _, err := os.Stat(filepath.Join(name, "README.md")); err != nil {
			t.Error(err)
		}
	}
	tested := []string{"github", "multi-tenant", "observe-first", "own-provider", "php-fastcgi", "postgres", "quickstart", "redis",
		"redis-cluster", "redis-sentinel", "shopify", "stripe"}
	if !slices.Equal(names, tested) {
		t.Errorf("examples are %v, tests run %v", names, tested)
	}
}

type env map[string]string

// site is an example that is running.
type site struct {
	t      *testing.T
	config []byte
	client *http.Client
}

// load runs an example with these variables in its environment. The Caddyfile is the one in the folder; of what it
// becomes only the listener, a unix socket here, certificates and Caddy's own administration are changed.
func load(t *testing.T, name string, vars env) *site {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for name, value := range vars {
		t.Setenv(name, value)
	}
	text, err := os.ReadFile(filepath.Join(name, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	validateDefaults(t, text, vars)
	dir, err := os.MkdirTemp("", "wd") // short enough for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	s := &site{t: t, config: adapt(t, text, socket)}
	validate(t, s.config)
	if err := caddy.Load(s.config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	return s
}

func (s *site) stop() {
	if err := caddy.Stop(); err != nil {
		s.t.Error(err)
	}
}

// validateDefaults validates an example as it stands, without the addresses that the test gives it.
func validateDefaults(t *testing.T, text []byte, vars env) {
	t.Helper()
	for _, name := range []string{"SITE", "APP_ADDR", "PHP_ADDR", "ROOT"} {
		if value, ok := vars[name]; ok {
			os.Unsetenv(name)
			defer os.Setenv(name, value)
		}
	}
	validate(t, adapt(t, text, ""))
}

// adapt makes JSON of a Caddyfile. Where a socket is given, all servers listen there.
func adapt(t *testing.T, text []byte, socket string) []byte {
	t.Helper()
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range warnings {
		t.Errorf("warning of the Caddyfile adapter: %s", warning)
	}
	var config map[string]any
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	config["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	config["storage"] = map[string]any{"module": "file_system", "root": os.Getenv("XDG_DATA_HOME")}
	if socket != "" {
		for _, value := range config["apps"].(map[string]any)["http"].(map[string]any)["servers"].(map[string]any) {
			server := value.(map[string]any)
			server["listen"] = []string{"unix/" + socket}
			server["automatic_https"] = map[string]bool{"disable": true} // nobody asks for certificates of example.com
		}
	}
	changed, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// validate does what `caddy validate` does.
func validate(t *testing.T, config []byte) {
	t.Helper()
	parsed := new(caddy.Config)
	if err := caddy.StrictUnmarshalJSON(config, parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(parsed); err != nil {
		t.Fatal(err)
	}
}

// ownProvider is a provider that the example defines.
func (s *site) ownProvider(name string) provider.Spec {
	s.t.Helper()
	var config struct {
		Apps struct {
			WebhookDedup webhookdedup.App `json:"webhook_dedup"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(s.config, &config); err != nil {
		s.t.Fatal(err)
	}
	own := config.Apps.WebhookDedup.Providers[name]
	if own == nil {
		s.t.Fatalf("the example has no provider %s", name)
	}
	return provider.Spec{ID: name, Own: true, Schemes: []provider.Scheme{*own.Signature}, EventID: own.ID}
}

func catalogue(t *testing.T, id string) provider.Spec {
	t.Helper()
	spec, ok := provider.Lookup(id)
	if !ok {
		t.Fatalf("no provider %s", id)
	}
	return spec
}

// delivery is what a provider sends.
type delivery struct {
	url      string
	provider provider.Spec
	secret   string
	id       string // of the event; evt_example where it is empty
	body     []byte // in place of the provider's sample
	drop     string // a header that is left out
}

func (d delivery) request(t *testing.T) *http.Request {
	t.Helper()
	compiled, err := provider.Compile(d.provider)
	if err != nil {
		t.Fatal(err)
	}
	id := d.id
	if id == "" {
		id = "evt_example"
	}
	example := d.provider.Example(id, time.Now())
	if d.body != nil {
		example.Body = d.body
	}
	example.Header.Del(d.drop)
	if err := compiled.Sign(&example, d.secret, time.Now()); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(example.Method, d.url, bytes.NewReader(example.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header, r.URL.RawQuery = example.Header, example.Query
	return r
}

type got struct {
	status int
	result string
}

func (s *site) do(r *http.Request) got {
	s.t.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		s.t.Fatal(err)
	}
	return got{res.StatusCode, res.Header.Get("Webhook-Dedup")}
}

func (s *site) get(url string) got {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(r)
}

// want sends a delivery and checks what its provider is told.
func (s *site) want(d delivery, status int, result string) {
	s.t.Helper()
	if g := s.do(d.request(s.t)); g != (got{status, result}) {
		s.t.Errorf("%s %s: told %d %q, want %d %q", d.url, d.id, g.status, g.result, status, result)
	}
}

// wantOnce sends a delivery twice: the application gets it once, and both are acknowledged.
func (s *site) wantOnce(a *app, d delivery) {
	s.t.Helper()
	before := a.count()
	s.want(d, http.StatusOK, "processed")
	s.want(d, http.StatusOK, "duplicate")
	if n := a.count() - before; n != 1 {
		s.t.Errorf("%s: the application ran %d times, want once", d.url, n)
	}
}

// app is the application behind an example.
type app struct {
	t    *testing.T
	addr string

	mu     sync.Mutex
	status int
	runs   []*http.Request
}

func newApp(t *testing.T) *app {
	a := &app{t: t, status: http.StatusOK}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.addr = server.Listener.Addr().String()
	return a
}

// newFastCGIApp is an application that speaks FastCGI, as PHP-FPM does.
func newFastCGIApp(t *testing.T) *app {
	a := &app{t: t, status: http.StatusOK}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fcgi.Serve(listener, a) // ends with the listener
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
	a.addr = listener.Addr().String()
	return a
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = append(a.runs, r)
	w.WriteHeader(a.status)
}

// answer changes the application's answer from now on.
func (a *app) answer(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

func (a *app) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.runs)
}

func (a *app) wantRuns(n int) {
	a.t.Helper()
	if got := a.count(); got != n {
		a.t.Errorf("the application ran %d times, want %d", got, n)
	}
}
