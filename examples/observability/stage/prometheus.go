package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a server of this stage's own, with the example's configuration and rules.
type Prometheus struct{ url string }

// ErrNoPrometheus: the program is not installed.
var ErrNoPrometheus = errors.New("prometheus was not found; on Debian and Ubuntu: apt-get install prometheus (`make setup` does it)")

// Prometheus starts a server that scrapes the stage, and evaluates the example's rules, as often as every says. It ends
// with the stage.
func (s *Stage) Prometheus(folder string, every time.Duration) (*Prometheus, error) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		return nil, ErrNoPrometheus
	}
	config, err := os.ReadFile(filepath.Join(folder, "prometheus.yml"))
	if err != nil {
		return nil, err
	}
	rules, err := filepath.Abs(filepath.Join(folder, "alerts.yml"))
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("15s", every.String(), "localhost:2019", s.Admin, "alerts.yml", rules).Replace(string(config))
	file := filepath.Join(s.dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	out := new(bytes.Buffer)
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(s.dir, "prometheus"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Prometheus{url: "http://" + address}
	s.close = append(s.close, func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		res, err := http.Get(p.url + "/-/ready")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p, nil
			}
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			cmd.Wait()
			return nil, fmt.Errorf("prometheus is not ready: %s", out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Series is one line of a graph, or one value.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time. It may be NaN.
type Point struct {
	At    time.Time
	Value float64
}

// Query evaluates an expression now.
func (p *Prometheus) Query(expr string) ([]Series, error) {
	return p.ask("query", url.Values{"query": {expr}})
}

// Range evaluates an expression over a time.
func (p *Prometheus) Range(expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	return p.ask("query_range", url.Values{"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {step.String()}})
}

// Rules returns the health of each rule by its name.
func (p *Prometheus) Rules() (map[string]string, error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get("rules", nil, &data); err != nil {
		return nil, err
	}
	health := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			health[rule.Name] = strings.TrimSpace(rule.Health + " " + rule.LastError)
		}
	}
	return health, nil
}

func (p *Prometheus) ask(path string, parameters url.Values) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  json.RawMessage
			Values []json.RawMessage
		}
	}
	if err := p.get(path, parameters, &data); err != nil {
		return nil, err
	}
	var all []Series
	for _, result := range data.Result {
		series := Series{Labels: result.Metric}
		if result.Value != nil {
			result.Values = append(result.Values, result.Value)
		}
		for _, raw := range result.Values {
			var at float64
			var text string
			if err := json.Unmarshal(raw, &[]any{&at, &text}); err != nil {
				return nil, err
			}
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			series.Points = append(series.Points, Point{time.UnixMilli(int64(at * 1000)), value})
		}
		all = append(all, series)
	}
	return all, nil
}

func (p *Prometheus) get(path string, parameters url.Values, data any) error {
	res, err := http.Get(p.url + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %s: %s", path, parameters.Get("query"), answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}
