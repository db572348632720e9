package webhookdedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestLogLevels has each result at the level at which an operator looks for it.
func TestLogLevels(t *testing.T) {
	want := map[zapcore.Level][]result{
		zapcore.InfoLevel:  {resultProcessed, resultDuplicate, resultInFlight, resultPassed},
		zapcore.ErrorLevel: {resultStoreError, resultUnguarded},
		zapcore.WarnLevel: {resultFailed, resultInvalidSignature, resultMissingID, resultTooLarge, resultBadRequest, resultNotAllowed,
			resultOverloaded},
	}
	n := 0
	for level, words := range want {
		for _, r := range words {
			n++
			if r.level() != level {
				t.Errorf("%s is logged at %s, want %s", r, r.level(), level)
			}
		}
	}
	if n != len(results) {
		t.Errorf("%d results have a level, of %d", n, len(results))
	}
}

// TestLogLine: one line a delivery, and the same fields in the access log.
func TestLogLine(t *testing.T) {
	a := newApp(t, status(http.StatusInternalServerError))
	s := start(t, a, memoryStore, guarded("scope shop"))
	s.want(s.deliver("evt_logged"), http.StatusInternalServerError, resultFailed)
	a.answer(nil)
	s.want(s.deliver("evt_logged"), http.StatusOK, resultProcessed)
	s.want(s.deliver("evt_logged"), http.StatusOK, resultDuplicate)
	log := s.logs(`"msg":"handled request"`)
	var lines, access []map[string]any
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		switch {
		case fields["msg"] == "delivery":
			lines = append(lines, fields)
		case fields["webhook_dedup"] != nil:
			access = append(access, fields["webhook_dedup"].(map[string]any))
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines about 3 deliveries", len(lines))
	}
	for i, want := range []map[string]any{
		{"level": "warn", "result": "failed", "attempt": 1.0, "upstream_status": 500.0},
		{"level": "info", "result": "processed", "attempt": 2.0, "upstream_status": 200.0},
		{"level": "info", "result": "duplicate", "attempt": 2.0, "upstream_status": nil},
	} {
		want["provider"], want["event_id"], want["event_type"], want["key"] = "stripe", "evt_logged", "charge.succeeded", ":stripe:shop:evt_logged"
		for field, value := range want {
			if lines[i][field] != value {
				t.Errorf("line %d: %s is %v, want %v", i, field, lines[i][field], value)
			}
		}
		for _, field := range []string{"duration", "upstream_duration"} {
			if seconds, ok := lines[i][field].(float64); ok != (i < 2 || field == "duration") || ok && (seconds <= 0 || seconds > 5) {
				t.Errorf("line %d: %s is %v", i, field, lines[i][field])
			}
		}
	}
	if len(access) < 3 || access[1]["result"] != "processed" || access[1]["event_id"] != "evt_logged" || access[1]["attempt"] != 2.0 {
		t.Errorf("access log: %v", access)
	}
}

// TestFloodIsLoggedInPart: what anybody can cause does not fill the disk, and hides no other line.
func TestFloodIsLoggedInPart(t *testing.T) {
	s := start(t, newApp(t, nil), memoryStore, guarded())
	client := s.client(false)
	const flood = 300
	for range flood {
		forged := event(t, "evt_forged")
		forged.Header.Set("Stripe-Signature", "t=1,v1=00")
		s.want(s.do(t.Context(), client, forged), http.StatusUnauthorized, resultInvalidSignature)
	}
	s.want(s.deliver("evt_good"), http.StatusOK, resultProcessed)
	lines := func() (n, omitted int) {
		for line := range strings.Lines(s.logs(`"event_id":"evt_good"`)) {
			if strings.Contains(line, `"msg":"delivery"`) && strings.Contains(line, `"invalid_signature"`) {
				n++
				var fields struct {
					Omitted int `json:"lines_omitted"`
				}
				if err := json.Unmarshal([]byte(line), &fields); err != nil {
					t.Fatal(err)
				}
				omitted += fields.Omitted
			}
		}
		return n, omitted
	}
	time.Sleep(time.Second)
	forged := event(t, "evt_forged")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	s.send(forged)
	deadline := time.Now().Add(5 * time.Second)
	for {
		n, omitted := lines()
		if n+omitted == flood+1 && n < flood/2 && omitted > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lines and %d left out, of %d", n, omitted, flood+1)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestLimitedLogger(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	logger := limited(zap.New(core), 5).With(zap.String("event_id", "evt"))
	for range 50 {
		logger.Warn("an outage", zap.Error(errors.New("down")))
		logger.Debug("not wanted")
	}
	logger.Warn("something else")
	n := logs.FilterMessage("an outage").Len()
	if n < 5 || n > 10 || logs.FilterMessage("something else").Len() != 1 || logs.FilterMessage("not wanted").Len() != 0 {
		t.Errorf("%d lines: %v", n, logs.All())
	}
	l := &lineLimit{burst: 2}
	at := time.Now()
	for i, want := range []string{"0 true", "0 true", "0 false", "0 false", "2 true"} {
		if i == 4 {
			at = at.Add(time.Second)
		}
		if omitted, ok := l.allow(at); fmt.Sprint(omitted, ok) != want {
			t.Errorf("line %d: %d %v, want %s", i, omitted, ok, want)
		}
	}
}

func TestEventTypesAreBounded(t *testing.T) {
	if got := shortened(strings.Repeat("ü", 1000)); len(got) > maxEventType || !strings.HasPrefix(got, "üü") || strings.ContainsRune(got, '�') {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
