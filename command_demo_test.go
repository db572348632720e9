package webhookdedup

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// nothingLeft checks that a run which printed out has removed and stopped everything it made.
func nothingLeft(t *testing.T, dir, out string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
	found := addresses.FindAllString(out, -1)
	if len(found) < 2 {
		t.Fatalf("addresses of Caddy and the application are not shown:\n%s", out)
	}
	for _, address := range found {
		closed(t, address)
	}
	if value, set := os.LookupEnv(demoSecretEnv); set {
		t.Fatalf("%s is set to %q", demoSecretEnv, value)
	}
	if open, _ := stores.References("file:" + filepath.Join(dir, "events.db")); open != 0 {
		t.Fatalf("%d references to the store are left", open)
	}
}

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	runCommand(t, t.Context(), "", "demo").want(t, 0, "", "") // what Caddy starts once and for all is there after this
	data := filesUnder(t, caddy.AppDataDir())
	before := runtime.NumGoroutine()
	began := time.Now()
	got := runCommand(t, t.Context(), "", "demo")
	for _, want := range []string{
		"webhook_dedup stripe {",
		"Five copies of one event at once",
		"nothing: it hung up",
		"retry while it is at work    200 duplicate",
		"attempt 1: finished, 500",
		"attempt 2: finished, 200",
		"401 invalid_signature",
		"As it should be: of 12 deliveries, 4 genuine events were processed once each, the forged one never.",
	} {
		got.want(t, 0, want, "")
	}
	if n := strings.Count(got.out, "200 processed"); n != 3 {
		t.Fatalf("%d deliveries were processed at once, want 3:\n%s", n, got.out)
	}
	if n := strings.Count(got.out, "200 duplicate"); n != 6 {
		t.Fatalf("%d duplicates, want 6:\n%s", n, got.out)
	}
	for _, line := range strings.Split(got.out, "\n") {
		if len([]rune(line)) > 100 {
			t.Errorf("wider than 100 columns: %s", line)
		}
	}
	if strings.Contains(got.out, "\x1b") {
		t.Error("escapes where there is no terminal")
	}
	if strings.Contains(got.out, "whsec_") || got.stderr != "" {
		t.Fatalf("the secret, or something on stderr: %s%s", got.out, got.stderr)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	nothingLeft(t, dir, got.out)
	goroutines(t, before)
	if now := filesUnder(t, caddy.AppDataDir()); now != data {
		t.Fatalf("Caddy's data directory has changed: %q, before %q", now, data)
	}
}

func filesUnder(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestDemoIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	runCommand(t, t.Context(), "", "demo").want(t, 0, "", "")
	for _, c := range []struct {
		name  string
		after time.Duration
	}{
		{"while it starts", 0},
		{"while copies wait", demoShortRun / 2},
		{"while the slow run is on, its provider gone", demoShortRun + demoHangUp + 100*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			defer cancel()
			got := runCommand(t, ctx, "", "demo")
			got.want(t, exitInterrupted, "", "interrupted")
			nothingLeft(t, dir, got.out)
			goroutines(t, before)
		})
	}
}

// TestDemoProblems: an outcome that is not as it should be is noticed.
func TestDemoProblems(t *testing.T) {
	good := func(number int) *scene {
		s := demoScenes()[number]
		for i := range s.deliveries {
			d := &s.deliveries[i]
			d.got = attempt{status: d.status, result: string(d.result)}
			if s.together {
				d.got = attempt{status: 200, result: string(resultDuplicate)}
			} else if d.result == "" {
				d.got = attempt{err: errHungUp}
			}
		}
		s.runs = []demoRun{{attempt: "1", status: 200, finished: true}}
		switch {
		case s.together:
			s.deliveries[3].got.result = string(resultProcessed)
		case s.forged:
			s.runs = nil
		case s.does.failFirst != 0:
			s.runs = []demoRun{{attempt: "1", status: 500, finished: true}, {attempt: "2", status: 200, finished: true}}
		}
		return s
	}
	for i := range demoScenes() {
		if wrong := good(i).problems(); len(wrong) > 0 {
			t.Fatalf("scene %d as it should be has problems: %v", i+1, wrong)
		}
	}
	const copies, slow, failure, forged, fresh = 0, 1, 2, 3, 4
	for _, c := range []struct {
		name   string
		number int
		spoil  func(*scene)
		want   string
	}{
		{"two copies processed", copies, func(s *scene) { s.deliveries[0].got.result = "processed" }, "2 copies were processed"},
		{"no copy processed", copies, func(s *scene) { s.deliveries[3].got.result = "duplicate" }, "0 copies were processed"},
		{"a copy refused", copies, func(s *scene) { s.deliveries[1].got.status = 503 }, "copy 2 was told 503"},
		{"a copy unanswered", copies, func(s *scene) { s.deliveries[1].got = attempt{err: errHungUp} }, "copy 2 was told nothing"},
		{"two runs", copies, func(s *scene) { s.runs = append(s.runs, s.runs[0]) }, "ran 2 times, not 1"},
		{"the provider did not hang up", slow, func(s *scene) { s.deliveries[0].got = attempt{status: 200, result: "processed"} }, "before the provider hung up"},
		{"the slow run was broken off", slow, func(s *scene) { s.runs[0].finished = false }, "did not come to its end"},
		{"the retry ran it again", slow, func(s *scene) { s.deliveries[1].got.result = "processed" }, "not 200 duplicate"},
		{"the failure was hidden", failure, func(s *scene) { s.deliveries[0].got = attempt{status: 200, result: "processed"} }, "not 500 failed"},
		{"the failed event was lost", failure, func(s *scene) { s.runs = s.runs[:1] }, "ran 1 times, not 2"},
		{"the retry is not told as such", failure, func(s *scene) { s.runs[1].attempt = "1" }, `attempt "1"`},
		{"the second run failed, too", failure, func(s *scene) { s.runs[1].status = 500 }, "ended with 500, not 200"},
		{"the forged one was accepted", forged, func(s *scene) { s.deliveries[0].got = attempt{status: 200, result: "processed"} }, "not 401"},
		{"the forged one got through", forged, func(s *scene) { s.runs = []demoRun{{}} }, "ran 1 times, not 0"},
		{"the new one is a duplicate", fresh, func(s *scene) { s.deliveries[0].got.result = "duplicate" }, "not 200 processed"},
		{"the new one never ran", fresh, func(s *scene) { s.runs = nil }, "ran 0 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good(c.number)
			c.spoil(s)
			wrong := strings.Join(s.problems(), "; ")
			if !strings.Contains(wrong, c.want) {
				t.Fatalf("problems %q, want one that says %q", wrong, c.want)
			}
		})
	}
}

// TestDemoOfABrokenModule: where the application is reached around webhook_dedup, the demo fails.
func TestDemoOfABrokenModule(t *testing.T) {
	application, err := startDemoApp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer application.close()
	_, port, ok := strings.Cut(application.address, ":")
	if !ok {
		t.Fatal(application.address)
	}
	d := &demo{secret: "whsec_x", app: application, port: port}
	var out strings.Builder
	good, err := d.play(t.Context(), newScreen(&out))
	if err != nil || good {
		t.Fatalf("got %v, %v", good, err)
	}
	for _, want := range []string{"NOT AS IT SHOULD BE:", "WRONG", "broken off", "the application ran 2 times, not 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestDemoCtrlC(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // a process can't be interrupted by another one there
	}
	dir := t.TempDir()
	cmd, printed := spawn(t, dir, "webhook-dedup", "demo")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "WHAT THE PROVIDER DID") {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // to its end, as Wait demands
	}
	if code := exitCode(cmd.Wait()); code != exitInterrupted {
		t.Fatalf("exit status %d:\n%s", code, printed)
	}
	left, err := filepath.Glob(filepath.Join(dir, "webhook-dedup-demo-*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v (%v)", left, err)
	}
}
