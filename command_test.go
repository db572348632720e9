package webhookdedup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// ran is what came of a command.
type ran struct {
	code   int
	out    string
	stderr string
}

// runCommand runs `caddy webhook-dedup` in this process.
func runCommand(t *testing.T, ctx context.Context, stdin string, args ...string) ran {
	t.Helper()
	root := &cobra.Command{Use: "caddy", SilenceUsage: true}
	cmd := &cobra.Command{Use: "webhook-dedup <command>"}
	setUpCommand(cmd)
	root.AddCommand(cmd)
	var out, stderr bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&stderr)
	root.SetArgs(append([]string{"webhook-dedup"}, args...))
	code := 0
	if err := root.ExecuteContext(ctx); err != nil {
		if _, scanned := fmt.Sscanf(err.Error(), "exiting with status %d", &code); scanned != nil {
			t.Fatalf("the command failed with %v, not with a status of its own", err)
		}
	}
	return ran{code, out.String(), stderr.String()}
}

// want checks exit status and what is printed where.
func (r ran) want(t *testing.T, code int, out, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.stderr, stderr) {
		t.Fatalf("got status %d, want %d; stdout must contain %q, stderr %q\nstdout:\n%s\nstderr:\n%s", r.code, code, out, stderr, r.out, r.stderr)
	}
}

// endpoint starts a Caddy that listens on a loopback port, and returns the URL of that. {app} in the site block is the
// application's address.
func endpoint(t *testing.T, app *app, global, block string) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(global, "admin ") {
		global += "\nadmin off"
	}
	config, err := adapt(fmt.Sprintf("{\nauto_https off\npersist_config off\nstorage_clean_interval off\nlog {\nlevel ERROR\n}\n%s\n}\nhttp://127.0.0.1:%s {\nbind 127.0.0.1\n%s\n}\n",
		global, port, strings.ReplaceAll(block, "{app}", app.Listener.Addr().String())))
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://127.0.0.1:" + port
}

// TestCommandProcess is `caddy` itself where another test has started this binary as such.
func TestCommandProcess(t *testing.T) {
	args, ok := os.LookupEnv("WEBHOOK_DEDUP_TEST_ARGS")
	if !ok {
		return
	}
	os.Args = append([]string{"caddy"}, strings.Split(args, "\n")...)
	caddycmd.Main()
	os.Exit(0)
}

// spawn prepares `caddy <args>` as a process of its own, whose temporary and Caddy's own files are in dir.
func spawn(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCommandProcess$")
	cmd.Env = append(os.Environ(), "WEBHOOK_DEDUP_TEST_ARGS="+strings.Join(args, "\n"), "TMPDIR="+dir, "TMP="+dir)
	// The test binary's own TestMain points Caddy's directories into a temporary one, which ends with the process only
	// where that ends through it; what it leaves is told apart by its name.
	both := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = both, both
	return cmd, both
}

func exitCode(err error) int {
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return exited.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestCommandExitStatusOfTheProcess(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"help", []string{"webhook-dedup"}, 0},
		{"a list", []string{"webhook-dedup", "providers"}, 0},
		{"nobody there", []string{"webhook-dedup", "send", "--provider", "stripe", "--secret", "x", "--url", "http://127.0.0.1:1/"}, 1},
		{"an unknown command", []string{"webhook-dedup", "sned"}, 2},
		{"an unknown flag", []string{"webhook-dedup", "send", "--no-such-flag"}, 2},
		{"an unknown provider", []string{"webhook-dedup", "providers", "nobody"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, printed := spawn(t, t.TempDir(), c.args...)
			if got := exitCode(cmd.Run()); got != c.want {
				t.Fatalf("exit status %d, want %d:\n%s", got, c.want, printed)
			}
		})
	}
}

func TestCommandRefusesWrongUse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(secretEnv, "")
	empty, noFormat, brokenConfig := filepath.Join(dir, "empty"), filepath.Join(dir, "config.txt"), filepath.Join(dir, "Caddyfile")
	short := filepath.Join(dir, "short.http")
	for name, content := range map[string]string{
		empty:        "",
		noFormat:     "localhost\n",
		brokenConfig: "{\nwebhook_dedup {\nprovider acme {\n}\n}\n}\n",
		short:        "POST / HTTP/1.1\nHost: x\nContent-Length: 10\n\n{}",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stripe := []string{"send", "--provider", "stripe", "--url", "http://127.0.0.1:1/", "--secret", "x"}
	github := []string{"send", "--provider", "github", "--url", "http://127.0.0.1:1/", "--secret", "x"}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown command", []string{"sned"}, `no command "sned"; there are demo, forget, inspect, list, providers, send, stats, watch`},
		{"demo with an argument", []string{"demo", "now"}, "takes flags only"},
		{"no provider", []string{"send", "--url", "http://x/"}, "--provider is missing"},
		{"no URL", []string{"send", "--provider", "stripe"}, "--url is missing"},
		{"not a URL", []string{"send", "--provider", "stripe", "--url", "localhost:80"}, "http[s]://host"},
		{"unknown provider", []string{"send", "--provider", "nobody", "--url", "http://x/"}, "allowed are adyen, "},
		{"unknown provider says where others are", []string{"send", "--provider", "nobody", "--url", "http://x/"}, "--config"},
		{"no secret", []string{"send", "--provider", "stripe", "--url", "http://x/"}, "$WEBHOOK_SECRET"},
		{"empty secret", []string{"send", "--provider", "stripe", "--url", "http://x/", "--secret", ""}, "no secret"},
		{"two secrets", append(stripe, "--secret-file", empty), "exclude each other"},
		{"empty secret file", []string{"send", "--provider", "stripe", "--url", "http://x/", "--secret-file", empty}, "no secret"},
		{"missing secret file", []string{"send", "--provider", "stripe", "--url", "http://x/", "--secret-file", dir + "/none"}, "no such file"},
		{"secret of the wrong form", []string{"send", "--provider", "svix", "--url", "http://x/", "--secret", "not base64!"}, "secret is not base64"},
		{"no copies", append(stripe, "--copies", "0"), "allowed are 1 to 1000"},
		{"too many copies", append(stripe, "--copies", "1001"), "allowed are 1 to 1000"},
		{"copies in words", append(stripe, "--copies", "many"), "invalid argument"},
		{"age in words", append(stripe, "--age", "old"), "durations such as"},
		{"negative timeout", append(stripe, "--timeout", "-1s"), "--timeout is negative"},
		{"age without a timestamp", append(github, "--age", "10m"), "github signs no timestamp"},
		{"header without a colon", append(stripe, "--header", "X-One"), "'Name: value'"},
		{"header that signing sets", append(stripe, "-H", "stripe-signature: t=1"), "set by signing"},
		{"header that can't be sent", append(stripe, "-H", "X-One: a\nb"), "'Name: value'"},
		{"a method that is none of a delivery", append(stripe, "--method", "delete"), "DELETE is not a method of stripe's"},
		{"unknown expectation", append(stripe, "--expect", "luck"), "once, refused, duplicate"},
		{"missing file", append(stripe, "--file", dir+"/none"), "no such file"},
		{"empty file", append(stripe, "--file", empty), "it is empty"},
		{"cut file", append(stripe, "--file", short), "Content-Length"},
		{"ID that is in the file", append(stripe, "--file", brokenConfig, "--id", "evt_1"), "--id has no effect"},
		{"public URL with a query", append(stripe, "--public-url", "http://x/?a=b"), "public_url"},
		{"everything from stdin", []string{"send", "--provider", "stripe", "--url", "http://x/", "--secret-file", "-", "--file", "-"}, "can't both be stdin"},
		{"adapter without a config", append(stripe, "--adapter", "caddyfile"), "without --config"},
		{"config of an unknown format", append(stripe, "--config", noFormat), "--adapter"},
		{"config with an unknown adapter", append(stripe, "--config", noFormat, "--adapter", "odd"), `no adapter "odd"`},
		{"config that is wrong", append(stripe, "--config", brokenConfig), "provider acme: no id"},
		{"missing config", append(stripe, "--config", dir+"/none.json"), "no such file"},
		{"two names", []string{"providers", "stripe", "github"}, "one name at a time"},
		{"unknown name", []string{"providers", "nobody"}, "allowed are adyen, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runCommand(t, t.Context(), "", c.args...)
			got.want(t, exitUsage, "", c.want)
			got.want(t, exitUsage, "", "--help")
			if got.out != "" {
				t.Fatalf("an error was printed on stdout: %s", got.out)
			}
		})
	}
}

func TestCommandRefusesWithoutRepeatingWhatMayBeSecret(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"a secret with a space that was not quoted", []string{"send", "--provider", "stripe", "--url", "http://x/", "--secret", "aa", "hush-hush"}},
		{"a URL with a password", []string{"send", "--provider", "stripe", "--url", "ftp://me:hush-hush@x/", "--secret", "aa"}},
		{"a secret of the wrong form", []string{"send", "--provider", "svix", "--url", "http://x/", "--secret", "hush-hush!"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runCommand(t, t.Context(), "", c.args...)
			if got.code != exitUsage || strings.Contains(got.out+got.stderr, "hush") {
				t.Fatalf("status %d, printed %s%s", got.code, got.out, got.stderr)
			}
		})
	}
}

func TestCommandHelp(t *testing.T) {
	for _, name := range []string{"", "demo", "send", "providers", "inspect", "list", "forget", "stats", "watch"} {
		t.Run("help "+name, func(t *testing.T) {
			got := runCommand(t, t.Context(), "", strings.Fields(name+" --help")...)
			for _, want := range []string{"Exit status:", "Examples:", "caddy webhook-dedup"} {
				got.want(t, 0, want, "")
			}
		})
	}
	t.Run("no command shows the help", func(t *testing.T) {
		runCommand(t, t.Context(), "").want(t, 0, "Available Commands:", "")
	})
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                        "0s",
		1500 * time.Millisecond:                  "1.5s",
		time.Minute:                              "1m",
		90 * time.Minute:                         "1h30m",
		24 * time.Hour:                           "1d",
		99305 * time.Second:                      "1d3h35m5s",
		-5 * time.Minute:                         "-5m",
		7 * 24 * time.Hour:                       "7d",
		24*time.Hour + 30*time.Second:            "1d30s",
		2*time.Hour + 1*time.Second:              "2h1s",
		59*time.Minute + 59*time.Second:          "59m59s",
		500 * time.Millisecond:                   "500ms",
		4*time.Hour + 500*time.Millisecond:       "4h",
		48*time.Hour + 3*time.Hour + time.Minute: "2d3h1m",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// goroutines waits until no more than before are left.
func goroutines(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// closed checks that nobody listens at the address.
func closed(t *testing.T, address string) {
	t.Helper()
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Fatalf("somebody still listens on %s", address)
	}
}
