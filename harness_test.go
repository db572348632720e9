package webhookdedup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
	"github.com/webhook-dedup/caddy-webhook-dedup/stores/memory"
)

const testSecret = "whsec_the-secret-of-the-tests"

// TestMain keeps Caddy's own files out of the home directory.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"} {
		os.Setenv(name, dir)
	}
	os.Setenv("STRIPE_SECRET", testSecret)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// site is a Caddy in this process that listens on a unix socket.
type site struct {
	t        *testing.T
	socket   string
	log      string
	app      *app
	reloaded time.Time
}

// start loads a Caddyfile whose site block is given. {app} in it is the application's address.
func start(t *testing.T, app *app, global, block string) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, app: app, socket: filepath.Join(dir, "s"), log: filepath.Join(dir, "log")}
	s.load(global, block)
	t.Cleanup(func() {
		if t.Failed() {
			if b, err := os.ReadFile(s.log); err == nil {
				t.Logf("the end of the log: %s", b[max(0, len(b)-4000):])
			}
		}
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) load(global, block string) {
	s.t.Helper()
	defer func() { s.reloaded = time.Now() }()
	if err := s.tryLoad(global, block); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) tryLoad(global, block string) error {
	address := "127.0.0.1:9"
	if s.app != nil {
		address = s.app.Listener.Addr().String()
	}
	admin := "admin off"
	if strings.Contains(global, "admin ") {
		admin = "" // the test has its own
	}
	text := fmt.Sprintf(`{
		%s
		auto_https off
		persist_config off
		grace_period 5s
		log {
			output file %s
			format json
			level debug
		}
		servers {
			protocols h1 h2c
		}
		%s
	}
	http://hooks.example.com {
		bind unix/%s
		log {
			output file %s.access
		}
		%s
	}`, admin, s.log, global, s.socket, s.log, strings.ReplaceAll(block, "{app}", address))
	config, err := adapt(text)
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

func adapt(text string) ([]byte, error) {
	adapter := caddyconfig.GetAdapter("caddyfile")
	config, _, err := adapter.Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// client returns an HTTP client of its own, so that closing its connection is hanging up.
func (s *site) client(h2 bool) *http.Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		},
		DisableCompression: true,
	}
	if h2 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// got is what a provider sees.
type got struct {
	status int
	result string
	body   string
	header http.Header
	err    error
}

func (s *site) do(ctx context.Context, c *http.Client, r *http.Request) got {
	res, err := c.Do(r.WithContext(ctx))
	if err != nil {
		return got{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return got{res.StatusCode, res.Header.Get(resultHeader), string(body), res.Header, err}
}

// send delivers a request over a connection of its own.
func (s *site) send(r *http.Request) got {
	for {
		g := s.do(context.Background(), s.client(false), r)
		// A reload shares the socket for a moment: what the old server accepts then, it closes unread. Providers connect
		// again, and so does this.
		if g.err == nil || g.status != 0 || time.Since(s.reloaded) > time.Second || r.GetBody == nil {
			return g
		}
		r.Body, _ = r.GetBody()
	}
}

// deliver sends a signed Stripe event.
func (s *site) deliver(id string) got { return s.send(event(s.t, id)) }

// want checks status and result.
func (s *site) want(g got, status int, result result) {
	s.t.Helper()
	if g.err != nil || g.status != status || g.result != string(result) {
		s.t.Fatalf("got %d %q (%v), want %d %q", g.status, g.result, g.err, status, result)
	}
}

// logs returns everything logged so far, once it holds all of want.
func (s *site) logs(want ...string) string {
	s.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		var all []byte
		for _, name := range []string{s.log, s.log + ".access"} {
			b, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				s.t.Fatal(err)
			}
			all = append(all, b...)
		}
		missing := ""
		for _, w := range want {
			if !bytes.Contains(all, []byte(w)) {
				missing = w
			}
		}
		if missing == "" {
			return string(all)
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the log lacks %s:\n%s", missing, all)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// event returns a signed Stripe delivery.
func event(t testing.TB, id string) *http.Request {
	t.Helper()
	return stripeRequest(t, fmt.Sprintf(`{"id":%q,"type":"charge.succeeded"}`, id), testSecret, time.Now())
}

func stripeRequest(t testing.TB, body, secret string, at time.Time) *http.Request {
	t.Helper()
	return signed(t, "stripe", &provider.Delivery{
		Method: http.MethodPost,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(body),
	}, secret, at)
}

func signed(t testing.TB, name string, d *provider.Delivery, secret string, at time.Time) *http.Request {
	t.Helper()
	spec, ok := provider.Lookup(name)
	if !ok {
		t.Fatalf("no provider %s", name)
	}
	compiled, err := provider.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Sign(d, secret, at); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(d.Method, "http://hooks.example.com/stripe", bytes.NewReader(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = d.Header
	return r
}

// app is the application: it counts its runs by event and answers as it is told.
type app struct {
	*httptest.Server
	mu   sync.Mutex
	runs []run
	next func(http.ResponseWriter, *http.Request)
}

type run struct {
	key, attempt, body, method string
	header                     http.Header
	finished                   bool
}

func newApp(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *app {
	a := &app{next: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		i := len(a.runs)
		a.runs = append(a.runs, run{r.Header.Get(keyHeader), r.Header.Get(attemptHeader), string(body), r.Method, r.Header.Clone(), false})
		answer := a.next
		a.mu.Unlock()
		defer func() {
			a.mu.Lock()
			a.runs[i].finished = true
			a.mu.Unlock()
		}()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// answer changes what the application does from now on.
func (a *app) answer(f func(http.ResponseWriter, *http.Request)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = f
}

func (a *app) all() []run {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]run(nil), a.runs...)
}

// await waits until n runs have begun, or finished.
func (a *app) await(t *testing.T, n int, finished bool) []run {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		runs, have := a.all(), 0
		for _, r := range runs {
			if r.finished || !finished {
				have++
			}
		}
		if have >= n {
			return runs
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d runs, want %d", have, n)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (a *app) wantRuns(t *testing.T, n int) {
	t.Helper()
	if runs := a.all(); len(runs) != n {
		t.Fatalf("the application ran %d times, want %d: %+v", len(runs), n, runs)
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// faultyStore is a memory store that fails on demand.
type faultyStore struct {
	// Name keeps stores of different tests apart.
	Name string `json:"name"`
}

// faults are switched on by the tests, by store name and operation.
var faults = struct {
	sync.Mutex
	fail map[string]func(op string) error
	open map[string]int // how many times a store was opened, less how many times it was closed
}{fail: map[string]func(string) error{}, open: map[string]int{}}

func failing(t *testing.T, name string, f func(op string) error) {
	faults.Lock()
	defer faults.Unlock()
	faults.fail[name] = f
	t.Cleanup(func() {
		faults.Lock()
		defer faults.Unlock()
		delete(faults.fail, name)
	})
}

func (faultyStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "webhook_dedup.stores.faulty", New: func() caddy.Module { return new(faultyStore) }}
}

func (f *faultyStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.Args(&f.Name)
	return nil
}

func (f *faultyStore) Identity() string { return "faulty:" + f.Name }

func (f *faultyStore) OpenStore(logger *zap.Logger) (claim.Store, error) {
	inner, err := new(memory.Store).OpenStore(logger)
	faults.Lock()
	defer faults.Unlock()
	faults.open[f.Name]++
	return &faultyClient{inner, f.Name}, err
}

type faultyClient struct {
	claim.Store
	name string
}

func (f *faultyClient) fault(op string) error {
	faults.Lock()
	fail := faults.fail[f.name]
	faults.Unlock()
	if fail == nil {
		return nil
	}
	return fail(op)
}

var errInjected = errors.New("injected failure")

// errApplied: the operation is applied, and its answer lost.
var errApplied = errors.New("injected failure after the operation was applied")

func (f *faultyClient) Claim(ctx context.Context, c claim.Claim) (claim.ClaimOutcome, claim.Record, error) {
	err := f.fault("claim")
	if err == nil || err == errApplied {
		outcome, record, applied := f.Store.Claim(ctx, c)
		f.fault("claimed") // a moment at which the answer can be held up
		return outcome, record, errors.Join(err, applied)
	}
	return 0, claim.Record{}, err
}

func (f *faultyClient) Renew(ctx context.Context, r claim.Renewal) error {
	if err := f.fault("renew"); err != nil {
		return err
	}
	return f.Store.Renew(ctx, r)
}

func (f *faultyClient) Complete(ctx context.Context, c claim.Completion) (claim.CompleteOutcome, error) {
	if err := f.fault("complete"); err != nil {
		return 0, err
	}
	return f.Store.Complete(ctx, c)
}

func (f *faultyClient) Release(ctx context.Context, r claim.Release) (claim.ReleaseOutcome, error) {
	if err := f.fault("release"); err != nil {
		return 0, err
	}
	return f.Store.Release(ctx, r)
}

func (f *faultyClient) Get(ctx context.Context, key string) (claim.Record, error) {
	if err := f.fault("get"); err != nil {
		return claim.Record{}, err
	}
	return f.Store.Get(ctx, key)
}

func (f *faultyClient) Close() error {
	faults.Lock()
	faults.open[f.name]--
	faults.Unlock()
	return f.Store.Close()
}

// misbehave is a later handler that panics or answers oddly, for want of an upstream that can.
type misbehave struct {
	How string `json:"how"`
}

func (misbehave) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.misbehave", New: func() caddy.Module { return new(misbehave) }}
}

var misbehaved = struct {
	sync.Mutex
	times map[string]int
}{times: map[string]int{}}

func (m *misbehave) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	misbehaved.Lock()
	misbehaved.times[m.How]++
	first := misbehaved.times[m.How] == 1
	misbehaved.Unlock()
	if !first {
		return next.ServeHTTP(w, r)
	}
	switch m.How {
	case "panic":
		panic("a bug")
	case "half":
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("half of it"))
		panic(http.ErrAbortHandler)
	case "plain error":
		return errors.New("something went wrong")
	case "error with status 200":
		return caddyhttp.Error(http.StatusOK, errors.New("not really"))
	}
	return next.ServeHTTP(w, r)
}

func init() {
	caddy.RegisterModule(faultyStore{})
	caddy.RegisterModule(misbehave{})
	httpcaddyfile.RegisterHandlerDirective("misbehave", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		m := new(misbehave)
		h.AllArgs(&m.How)
		misbehaved.Lock()
		defer misbehaved.Unlock()
		misbehaved.times[m.How] = 0
		return m, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("misbehave", httpcaddyfile.Before, "reverse_proxy")
}

// decode reads adapted JSON.
func decode(t *testing.T, config []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(config, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// listen returns a listener on a free loopback port, and its address.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String()
}
