package observability

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/examples/observability/stage"
)

var metricName = regexp.MustCompile(`caddy_webhook_dedup_[a-z_]+`)

// TestQueriesAgainstARunningInstance runs the example under traffic, with a Prometheus that scrapes it: every query of
// the dashboard and every rule names metrics that there are, and gets an answer.
func TestQueriesAgainstARunningInstance(t *testing.T) {
	s, err := stage.Start(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	prometheus, err := s.Prometheus(".", 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	round := 0
	traffic := func() {
		t.Helper()
		round++
		for _, name := range []string{"stripe", "github"} {
			for _, step := range []struct {
				id     string
				app    *http.HandlerFunc
				forged bool
				want   string
			}{
				{"evt_good", nil, false, "processed"}, {"evt_good", nil, false, "duplicate"},
				{"evt_bad", &fails, false, "failed"}, {"evt_bad", &fails, false, "failed"},
				{"evt_forged", nil, true, "invalid_signature"},
			} {
				s.App.Store(step.app)
				if got, err := s.Deliver(name, fmt.Sprint(step.id, round), step.forged); err != nil || got != step.want {
					t.Fatalf("%s %s: %q %v, want %s", name, step.id, got, err, step.want)
				}
			}
		}
	}
	panels, err := stage.Dashboard("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type question struct{ where, expr string }
	var questions []question
	for _, panel := range panels {
		if len(panel.Queries) == 0 {
			t.Errorf("panel %q has no query", panel.Title)
		}
		for _, q := range panel.Queries {
			questions = append(questions, question{panel.Title, q.Filled("5s")})
		}
	}
	metrics, err := s.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	known := metricName.FindAllString(metrics, -1)
	rules, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	asked := slices.Clone(questions)
	for _, line := range strings.Split(string(rules), "\n") {
		asked = append(asked, question{"alerts.yml", line})
	}
	for _, q := range asked {
		for _, name := range metricName.FindAllString(q.expr, -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no metric %s", q.where, name)
			}
		}
	}

	deadline := time.Now().Add(time.Minute)
	for {
		traffic()
		var unanswered []string
		for _, q := range questions {
			series, err := prometheus.Query(q.expr)
			if err != nil {
				t.Fatalf("%s: %v", q.where, err)
			}
			if len(series) == 0 {
				unanswered = append(unanswered, q.where+": "+q.expr)
			}
		}
		if len(unanswered) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer to:\n%s", strings.Join(unanswered, "\n"))
		}
		time.Sleep(200 * time.Millisecond)
	}
	for {
		traffic()
		wrong, err := rulesInTrouble(prometheus)
		if err != nil {
			t.Fatal(err)
		}
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(wrong)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// rulesInTrouble says which rule cannot be evaluated, or does not record what it should: a ratio for each provider.
func rulesInTrouble(prometheus *stage.Prometheus) (string, error) {
	health, err := prometheus.Rules()
	if err != nil {
		return "", err
	}
	if len(health) != 10 {
		return fmt.Sprintf("there are %d rules", len(health)), nil
	}
	for name, state := range health {
		if state != "ok" {
			return fmt.Sprintf("rule %s is %s", name, state), nil
		}
		if strings.HasPrefix(name, "webhook_dedup:") {
			series, err := prometheus.Query(name)
			if err != nil {
				return "", err
			}
			if len(series) != 2 {
				return fmt.Sprintf("%s has %d series", name, len(series)), nil
			}
		}
	}
	return "", nil
}

// TestAlertRules lets promtool play each alert.
func TestAlertRules(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Fatal(stage.ErrNoPrometheus)
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestEveryAlertIsInTheRunbook: an alert leads to the place that says what to do, and is played by a test.
func TestEveryAlertIsInTheRunbook(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules, tests, runbook := read("alerts.yml"), read("alerts_test.yml"), read("../../docs/runbook.md")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) != 7 {
		t.Errorf("%d alerts", len(alerts))
	}
	for _, alert := range alerts {
		name := alert[1]
		if !strings.Contains(rules, "docs/runbook.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s does not lead to its place in the runbook", name)
		}
		if !strings.Contains(runbook, "### "+name+"\n") {
			t.Errorf("the runbook does not have %s", name)
		}
		if !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts:") {
			t.Errorf("no test has %s firing", name)
		}
	}
}
