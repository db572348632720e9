// Package stage runs the observability example: its Caddyfile in this process, an application and a provider of which
// one can say what they do, and a real Prometheus that scrapes all of it.
package stage

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/webhook-dedup/caddy-webhook-dedup"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

const secret = "whsec_secret-of-the-example"

// Stage is the running example.
type Stage struct {
	// App is what the application does; nil answers 200.
	App atomic.Pointer[http.HandlerFunc]
	// Admin is the address of Caddy's admin endpoint.
	Admin string

	site  string
	app   *httptest.Server
	dir   string
	close []func()
}

// Start runs the example in folder.
func Start(folder string) (*Stage, error) {
	s := new(Stage)
	if err := s.start(folder); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stage) start(folder string) (err error) {
	if s.dir, err = os.MkdirTemp("", "webhook-dedup-stage"); err != nil {
		return err
	}
	s.close = append(s.close, func() { os.RemoveAll(s.dir) })
	s.app = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if f := s.App.Load(); f != nil {
			(*f)(w, r)
		}
	}))
	s.close = append(s.close, s.app.Close)
	if s.site, err = freeAddress(); err != nil {
		return err
	}
	if s.Admin, err = freeAddress(); err != nil {
		return err
	}
	for name, value := range map[string]string{"ADMIN": s.Admin, "SITE": "http://" + s.site, "APP": s.app.Listener.Addr().String(),
		"DATA_DIR": s.dir, "STRIPE_SECRET": secret, "GITHUB_SECRET": secret, "XDG_CONFIG_HOME": s.dir, "XDG_DATA_HOME": s.dir} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "Caddyfile"))
	if err != nil {
		return err
	}
	// Quieter than it is for users, and leaving nothing behind.
	text = bytes.Replace(text, []byte("\n{\n"), []byte("\n{\npersist_config off\nlog {\noutput discard\n}\n"), 1)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	s.close = append(s.close, func() { caddy.Stop() })
	return caddy.Load(config, true)
}

// Close ends everything, the last first.
func (s *Stage) Close() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
}

// Deliver sends a signed event to /stripe or /github and returns the result that Caddy told.
func (s *Stage) Deliver(name, id string, forged bool) (string, error) {
	spec, ok := provider.Lookup(name)
	if !ok {
		return "", fmt.Errorf("no provider %s", name)
	}
	compiled, err := provider.Compile(spec)
	if err != nil {
		return "", err
	}
	d := provider.Delivery{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}},
		Body: fmt.Appendf(nil, `{"id":%q,"type":"charge.succeeded"}`, id)}
	if name == "github" {
		d.Header["X-Github-Delivery"], d.Header["X-Github-Event"] = []string{id}, []string{"push"}
	}
	key := secret
	if forged {
		key = "whsec_of-somebody-else"
	}
	if err := compiled.Sign(&d, key, time.Now()); err != nil {
		return "", err
	}
	r, err := http.NewRequest(d.Method, "http://"+s.site+"/"+name, bytes.NewReader(d.Body))
	if err != nil {
		return "", err
	}
	r.Header = d.Header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.Header.Get("Webhook-Dedup"), err
}

// Metrics is what Caddy serves to Prometheus.
func (s *Stage) Metrics() (string, error) {
	res, err := http.Get("http://" + s.Admin + "/metrics")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
