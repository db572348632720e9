package webhookdedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/cobra"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Shows what happens to deliveries, with nothing to set up",
		Long: `Starts Caddy in this process, with webhook_dedup on the embedded store in front of a small
application that counts its runs, on free ports of the loopback interface. Then it sends
deliveries as a provider does, signed like Stripe's:

  - five copies of one event at once
  - one that the provider hangs up on, because the application is slow, and its retry
  - one that the application fails with 500, and its retry
  - a forged one
  - a new event

and shows what the provider was told and what the application did. It takes about three seconds
and leaves nothing behind: no process, no port, no file.

Exit status: 0 everything was as it should be; 1 it was not; 2 it was called wrongly; 130
interrupted.`,
		Example: `  caddy webhook-dedup demo`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupted(cmd)
			defer stop()
			ok, err := runDemo(ctx, newScreen(cmd.OutOrStdout()))
			switch {
			case ctx.Err() != nil:
				return exitWith(cmd, exitInterrupted, errors.New("interrupted; everything is stopped and removed"))
			case err != nil:
				return exitWith(cmd, exitFailed, err)
			case !ok:
				return exitWith(cmd, exitFailed, nil)
			}
			return nil
		},
	}
}

// demoSecretEnv names the variable from which the demo's Caddyfile takes its secret, as a real one would.
const demoSecretEnv = "DEMO_STRIPE_SECRET"

// demo is one run of the demonstration: an application, a Caddy in front of it, and a provider.
type demo struct {
	dir    string
	secret string
	app    *demoApp
	port   string // Caddy's
}

// runDemo reports whether everything was as it should be.
func runDemo(ctx context.Context, out *screen) (ok bool, err error) {
	d := &demo{secret: "whsec_" + rand.Text()}
	if d.dir, err = os.MkdirTemp("", "webhook-dedup-demo-"); err != nil {
		return false, fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() {
		if removed := os.RemoveAll(d.dir); removed != nil {
			err = errors.Join(err, fmt.Errorf("removing the temporary directory: %w", removed))
		}
	}()
	if d.app, err = startDemoApp(ctx); err != nil {
		return false, err
	}
	defer d.app.close()
	restore, err := setEnv(demoSecretEnv, d.secret)
	if err != nil {
		return false, err
	}
	defer restore()
	config, err := d.startCaddy()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.stopCaddy()) }()
	fmt.Fprintf(out, "Caddy runs in this process with this Caddyfile; its site block is all that an application needs:\n\n%s\n", indent(config))
	return d.play(ctx, out)
}

// setEnv sets a variable of this process and returns how to put it back.
func setEnv(name, value string) (restore func(), err error) {
	before, had := os.LookupEnv(name)
	if err := os.Setenv(name, value); err != nil {
		return nil, fmt.Errorf("setting %s: %w", name, err)
	}
	return func() {
		if had {
			_ = os.Setenv(name, before) // it could be set a moment ago
		} else {
			_ = os.Unsetenv(name)
		}
	}, nil
}

// caddyfile is the configuration, as it is loaded and shown. Cleaning the certificate storage is off because that
// would write into Caddy's data directory.
func (d *demo) caddyfile() string {
	return fmt.Sprintf(`{
	# A throwaway Caddy: nothing but one site, and only errors in the log.
	admin off
	auto_https off
	persist_config off
	storage_clean_interval off
	log {
		level ERROR
	}
	webhook_dedup {
		store file {
			path %s
		}
	}
}

http://127.0.0.1:%s {
	bind 127.0.0.1
	handle /stripe {
		webhook_dedup stripe {
			secret {env.%s}
		}
		reverse_proxy %s
	}
}
`, caddyfileQuote(filepath.Join(d.dir, "events.db")), d.port, demoSecretEnv, d.app.address)
}

func caddyfileQuote(s string) string {
	if strings.ContainsAny(s, " \t\"`{}#\\") {
		return "`" + s + "`"
	}
	return s
}

// startCaddy loads the configuration and returns it.
func (d *demo) startCaddy() (string, error) {
	adapter := caddyconfig.GetAdapter("caddyfile")
	if adapter == nil {
		return "", errors.New("this Caddy was built without its standard modules, which the demo needs")
	}
	var failed error
	// Somebody else may take the port between its choice and its use.
	for range 5 {
		var err error
		if d.port, err = freePort(); err != nil {
			return "", err
		}
		text := d.caddyfile()
		config, _, err := adapter.Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
		if err != nil {
			return "", fmt.Errorf("adapting the demo's Caddyfile: %w", err)
		}
		if failed = caddy.Load(config, true); failed == nil {
			return text, nil
		}
	}
	return "", fmt.Errorf("starting Caddy: %w", failed)
}

// freePort chooses one. The system does not give it out again for a while.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// stopCaddy returns when the store's file is closed: deliveries whose provider has hung up hold it a little longer.
func (d *demo) stopCaddy() error {
	if err := caddy.Stop(); err != nil {
		return fmt.Errorf("stopping Caddy: %w", err)
	}
	if !runs.wait(10*time.Second) || !pendingWork.wait(10*time.Second) {
		return errors.New("stopping Caddy: a delivery does not end")
	}
	return nil
}

// sender makes a sender of one event.
func (d *demo) sender(event string, patience time.Duration) (*sender, error) {
	spec, ok := provider.Lookup("stripe")
	if !ok {
		return nil, errors.New("the catalogue has no provider stripe")
	}
	compiled, err := provider.Compile(spec)
	if err != nil {
		return nil, err
	}
	example := spec.Example(event, time.Now())
	return &sender{
		provider: compiled,
		secret:   d.secret,
		client:   newSenderClient(false),
		timeout:  patience,
		method:   http.MethodPost,
		url:      &url.URL{Scheme: "http", Host: "127.0.0.1:" + d.port, Path: "/stripe"},
		header:   example.Header,
		body:     example.Body,
	}, nil
}

func indent(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + strings.ReplaceAll(line, "\t", "    ")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
