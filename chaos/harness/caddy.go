package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Config is a Caddyfile in parts. Caddy's own globals, which keep it on loopback and away from the user's folders, are
// added by Render.
type Config struct {
	App    string // lines of the global webhook_dedup block
	Global string // further global options
	Site   string // lines of the one site
	Mark   string // any text; another mark makes it another configuration, so that Caddy really reloads
}

// Caddy is a Caddy of its own folders and ports. It can be started, ended in several ways and started again.
type Caddy struct {
	Admin  string // address of the admin API
	Listen string // address of the site
	URL    string // http:// and Listen
	Log    Log
	Files  string // a folder that survives restarts

	config  Config
	process *process
}

// NewCaddy reserves what a Caddy needs and sees to its end when the test ends; a data race or a crash found in its log
// fails the test.
func NewCaddy(t testing.TB) *Caddy {
	t.Helper()
	c := &Caddy{Admin: FreeAddress(t), Listen: FreeAddress(t), Files: t.TempDir()}
	c.URL = "http://" + c.Listen
	t.Cleanup(func() {
		if c.process != nil {
			c.process.kill()
		}
		for _, trouble := range []string{"WARNING: DATA RACE", "fatal error: ", "\npanic: "} {
			if c.Log.Contains(trouble) {
				t.Errorf("Caddy's log says %q:\n%s", strings.TrimSpace(trouble), around(c.Log.String(), trouble, 4000))
			}
		}
		if t.Failed() {
			t.Logf("the end of Caddy's log:\n%s", c.Log.Tail(30))
		}
	})
	return c
}

// Render returns the Caddyfile.
func (c *Caddy) Render(config Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tadmin %s\n\tpersist_config off\n\tauto_https off\n", c.Admin)
	fmt.Fprintf(&b, "\tservers {\n\t\tprotocols h1 h2c\n\t}\n%s", indent(config.Global, 1))
	if config.App != "" {
		fmt.Fprintf(&b, "\twebhook_dedup {\n%s\t}\n", indent(config.App, 2))
	}
	fmt.Fprintf(&b, "}\n\nhttp://:%s {\n\tbind 127.0.0.1\n", port(c.Listen))
	if config.Mark != "" {
		fmt.Fprintf(&b, "\theader Config-Mark %q\n", config.Mark)
	}
	fmt.Fprintf(&b, "%s}\n", indent(config.Site, 1))
	return b.String()
}

// Start starts Caddy and waits until its site is served.
func (c *Caddy) Start(t testing.TB, config Config) {
	t.Helper()
	c.config = config
	file := c.write(t, "Caddyfile", c.Render(config))
	c.process = startProcess(t, &c.Log, c.env(), binary, "run", "--config", file, "--adapter", "caddyfile")
	Eventually(t, 60*time.Second, "Caddy serves its site", func() bool {
		if c.process.ended() {
			t.Fatalf("Caddy ended while starting: %v\n%s", c.process.err, c.Log.Tail(20))
		}
		return c.adminAnswers() && accepts(c.Listen)
	})
}

// TryRun starts a Caddy that is expected to end by itself, and returns what it printed and how it ended; no error means
// that it was still running at the limit, and was then ended.
func (c *Caddy) TryRun(t testing.TB, config Config, limit time.Duration) (output string, err error) {
	t.Helper()
	file := c.write(t, "Caddyfile", c.Render(config))
	c.process = startProcess(t, &c.Log, c.env(), binary, "run", "--config", file, "--adapter", "caddyfile")
	if c.process.wait(limit) {
		return c.Log.String(), c.process.err
	}
	c.process.kill()
	return c.Log.String(), nil
}

// Restart starts Caddy again with the configuration that it had.
func (c *Caddy) Restart(t testing.TB) {
	t.Helper()
	if !c.process.ended() {
		t.Fatal("Caddy is still running")
	}
	c.Start(t, c.config)
}

// Load gives the running Caddy another configuration, through its admin API.
func (c *Caddy) Load(config Config) error {
	resp, err := adminClient.Post("http://"+c.Admin+"/load", "text/caddyfile", strings.NewReader(c.Render(config)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

// Kill is kill -9.
func (c *Caddy) Kill() { c.process.kill() }

// Terminate sends SIGTERM and does not wait.
func (c *Caddy) Terminate(t testing.TB) {
	t.Helper()
	c.process.signal(t, syscall.SIGTERM)
}

// WaitEnd waits until the process has ended.
func (c *Caddy) WaitEnd(t testing.TB, limit time.Duration) {
	t.Helper()
	if !c.process.wait(limit) {
		t.Fatalf("Caddy did not end within %s", limit)
	}
}

// Freeze stops the process until Thaw, as a laptop's lid or a hypervisor does.
func (c *Caddy) Freeze(t testing.TB) { t.Helper(); c.process.signal(t, syscall.SIGSTOP) }

// Thaw is the end of Freeze.
func (c *Caddy) Thaw(t testing.TB) { t.Helper(); c.process.signal(t, syscall.SIGCONT) }

// Goroutines asks Caddy how many goroutines it has.
func (c *Caddy) Goroutines(t testing.TB) int {
	t.Helper()
	resp, err := adminClient.Get("http://" + c.Admin + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^goroutine profile: total (\d+)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no goroutine profile: %.200s", text)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// Validate runs caddy validate on a configuration for this Caddy, beside it if it runs.
func (c *Caddy) Validate(t testing.TB, config Config) (output string, err error) {
	t.Helper()
	return c.ValidateText(t, c.Render(config))
}

// ValidateText runs caddy validate on a whole Caddyfile; in its messages the file is called Caddyfile.check.
func (c *Caddy) ValidateText(t testing.TB, caddyfile string) (output string, err error) {
	t.Helper()
	file := c.write(t, "Caddyfile.check", caddyfile)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "validate", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), c.env()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *Caddy) env() []string {
	return []string{
		"HOME=" + c.Files,
		"XDG_CONFIG_HOME=" + filepath.Join(c.Files, "config"),
		"XDG_DATA_HOME=" + filepath.Join(c.Files, "data"),
	}
}

func (c *Caddy) write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(c.Files, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c *Caddy) adminAnswers() bool {
	resp, err := adminClient.Get("http://" + c.Admin + "/config/")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// adminClient keeps no connection, since the admin API is replaced with every configuration.
var adminClient = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
