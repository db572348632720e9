// Package leak loads configurations in this process, where goroutines can be counted one by one.
package leak

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/goleak"

	_ "github.com/webhook-dedup/caddy-webhook-dedup"
	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

const secret = "whsec_leak"

func TestReloadsLeaveNothingBehind(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
	t.Setenv("LEAK_SECRET", secret)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	redis := harness.NewRedis(t)
	address := harness.FreeAddress(t)

	load := func(n int) {
		t.Helper()
		config := fmt.Sprintf(`{
			admin off
			auto_https off
			persist_config off
			storage_clean_interval off
			log {
				output discard
			}
		}
		http://%s {
			header Config-Mark %d
			handle /file {
				webhook_dedup stripe {
					secret {env.LEAK_SECRET}
				}
				reverse_proxy %s {
					transport http {
						keepalive off
					}
				}
			}
			handle /redis {
				webhook_dedup stripe {
					secret {env.LEAK_SECRET}
					store redis {
						url %s
					}
				}
				reverse_proxy %[3]s {
					transport http {
						keepalive off
					}
				}
			}
		}`, address, n, app.Listener.Addr(), redis.URL())
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := caddy.Load(adapted, true); err != nil {
			t.Fatal(err)
		}
	}
	deliver := func(n int) {
		t.Helper()
		for _, path := range []string{"/file", "/redis"} {
			provider := harness.NewStripe(t, "http://"+address+path, secret, false)
			answers := provider.UntilAccepted(harness.NewEvent(fmt.Sprint("evt_", n)), 20*time.Millisecond, 20*time.Second)
			if last := answers[len(answers)-1]; !last.Accepted() {
				t.Fatalf("told %s", last)
			}
			provider.Disconnect()
		}
	}

	// What Caddy itself and its libraries start once is there after a first life.
	load(-1)
	deliver(-1)
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for n := range 100 {
		load(n)
		if n%10 == 0 {
			deliver(n)
		}
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	harness.Eventually(t, 10*time.Second, "no connection at Redis is left", func() bool { return redis.Clients(t) == 0 })
}
