package webhookdedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// ask calls the admin API of the running configuration.
func ask(t *testing.T, method, target string) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	mux := http.NewServeMux()
	for _, route := range (adminAPI{}).Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := route.Handler.ServeHTTP(w, r); err != nil {
				var apiErr caddy.APIError
				if !errors.As(err, &apiErr) {
					t.Errorf("%s %s: %v is no error of the API", method, target, err)
				}
				w.WriteHeader(apiErr.HTTPStatus)
				json.NewEncoder(w).Encode(map[string]string{"error": apiErr.Error()})
			}
		})
	}
	mux.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %d %q", method, target, w.Code, w.Body)
	}
	return w.Code, answer
}

func TestAdminAPI(t *testing.T) {
	hold := make(chan struct{})
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("scope s//x"))
	for i := range 5 {
		s.want(s.deliver(fmt.Sprintf("evt_%d", i)), http.StatusOK, resultProcessed)
	}
	s.want(s.deliver("evt_0"), http.StatusOK, resultDuplicate)
	a.answer(status(http.StatusInternalServerError))
	s.want(s.deliver("evt_failed"), http.StatusInternalServerError, resultFailed)

	key := ":stripe:s//x:evt_0"
	path := "/webhook_dedup/events/" + url.PathEscape(key)
	code, event := ask(t, "GET", path)
	for field, want := range map[string]any{"key": key, "provider": "stripe", "scope": "s//x", "event_id": "evt_0",
		"event_type": "charge.succeeded", "state": "processed", "attempts": 1.0, "duplicates": 1.0, "status": 200.0,
		"lease_until": nil, "store": "memory"} {
		if code != http.StatusOK || event[field] != want {
			t.Errorf("%d: %s is %v, want %v", code, field, event[field], want)
		}
	}
	if sha, _ := event["body_sha256"].(string); len(sha) != 64 {
		t.Errorf("body_sha256 is %v", event["body_sha256"])
	}

	seen := map[string]bool{}
	for cursor, pages := "", 0; ; pages++ {
		code, page := ask(t, "GET", "/webhook_dedup/events?limit=2&cursor="+url.QueryEscape(cursor))
		if code != http.StatusOK || pages > 100 {
			t.Fatalf("%d: %v", code, page)
		}
		for _, e := range page["events"].([]any) {
			seen[e.(map[string]any)["event_id"].(string)] = true
		}
		if cursor, _ = page["cursor"].(string); cursor == "" {
			break
		}
	}
	if len(seen) != 6 {
		t.Errorf("listed %v", seen)
	}
	for query, want := range map[string]int{"state=failed": 1, "state=processed": 5, "provider=github": 0, "event_id=evt_3": 1,
		"prefix=" + url.QueryEscape(":stripe:s//x:evt_"): 6, "event_id=evt_0&state=failed": 0} {
		if _, page := ask(t, "GET", "/webhook_dedup/events?"+query); len(page["events"].([]any)) != want {
			t.Errorf("%s: %v, want %d", query, page, want)
		}
	}
	_, stats := ask(t, "GET", "/webhook_dedup/stats")
	if got := fmt.Sprint(stats["providers"]); got != "map[stripe:map[failed:1 processed:5]]" {
		t.Errorf("stats: %v", got)
	}

	a.answer(func(http.ResponseWriter, *http.Request) { <-hold })
	running := make(chan got)
	go func() { running <- s.deliver("evt_running") }()
	a.await(t, 7, false)
	runningPath := "/webhook_dedup/events/" + url.PathEscape(":stripe:s//x:evt_running")
	if code, answer := ask(t, "DELETE", runningPath); code != http.StatusConflict || !strings.Contains(answer["error"].(string), "force") {
		t.Errorf("forgot an event that was being processed: %d %v", code, answer)
	}
	if _, event := ask(t, "GET", runningPath); event["state"] != "processing" || event["lease_until"] == nil {
		t.Errorf("running: %v", event)
	}
	close(hold)
	s.want(<-running, http.StatusOK, resultProcessed)

	if code, answer := ask(t, "DELETE", path); code != http.StatusOK || answer["state"] != "processed" {
		t.Errorf("forget: %d %v", code, answer)
	}
	s.want(s.deliver("evt_0"), http.StatusOK, resultProcessed)

	for _, test := range []struct {
		method, target string
		code           int
		want           string
	}{
		{"GET", "/webhook_dedup/events/" + url.PathEscape(":stripe:s:unknown"), 404, "event_id"},
		{"DELETE", "/webhook_dedup/events/unknown", 404, "no record"},
		{"GET", "/webhook_dedup/events/", 400, "one percent-encoded segment"},
		{"GET", "/webhook_dedup/events?limit=0", 400, "1 to 1000"},
		{"GET", "/webhook_dedup/events?limit=1000000000", 400, "1 to 1000"},
		{"GET", "/webhook_dedup/events?limit=x", 400, "1 to 1000"},
		{"GET", "/webhook_dedup/events?state=sleeping", 400, "processing, processed, failed"},
		{"GET", "/webhook_dedup/events?cursor=nonsense", 400, "cursor"},
		{"GET", "/webhook_dedup/events?cursor=7.x", 400, "cursor"},
		{"GET", "/webhook_dedup/events?cursor=0.%21%21", 400, "cursor"},
		{"GET", "/webhook_dedup/events?status=1", 400, "unknown parameter"},
		{"POST", "/webhook_dedup/events", 405, "POST"},
		{"DELETE", "/webhook_dedup/stats", 405, "DELETE"},
		{"GET", "/webhook_dedup/other", 404, "events"},
	} {
		if code, answer := ask(t, test.method, test.target); code != test.code || !strings.Contains(fmt.Sprint(answer["error"]), test.want) {
			t.Errorf("%s %s: %d %v, want %d with %q", test.method, test.target, code, answer, test.code, test.want)
		}
	}
}

func TestAdminAPIWithoutStore(t *testing.T) {
	start(t, nil, "", "respond ok")
	if code, answer := ask(t, "GET", "/webhook_dedup/stats"); code != http.StatusNotFound {
		t.Errorf("%d %v", code, answer)
	}
	s := start(t, newApp(t, nil), "webhook_dedup {\n store faulty admin\n}", guarded())
	s.want(s.deliver("evt_1"), http.StatusOK, resultProcessed)
	failing(t, "admin", func(string) error { return errInjected })
	if code, answer := ask(t, "GET", "/webhook_dedup/events/"+url.PathEscape(":stripe:x:evt_1")); code != http.StatusServiceUnavailable {
		t.Errorf("%d %v", code, answer)
	}
}
