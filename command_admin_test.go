package webhookdedup

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// startWithAdmin is start with an admin endpoint on a unix socket, whose address it returns.
func startWithAdmin(t *testing.T, app *app, global, block string) (*site, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wd") // short, as a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := "unix/" + filepath.Join(dir, "admin")
	return start(t, app, "admin "+address+"\n"+global, block), address
}

func TestCommandsAskCaddy(t *testing.T) {
	a := newApp(t, nil)
	s, address := startWithAdmin(t, a, memoryStore, guarded("scope {http.request.uri.query.endpoint}"))
	at := func(args ...string) ran {
		t.Helper()
		return runCommand(t, t.Context(), "", append(args, "--address", address)...)
	}
	deliver := func(id, endpoint string) got {
		r := event(t, id)
		r.URL.RawQuery = "endpoint=" + endpoint
		return s.send(r)
	}
	s.want(deliver("evt_1", "shop"), http.StatusOK, resultProcessed)
	s.want(deliver("evt_1", "shop"), http.StatusOK, resultDuplicate)
	s.want(deliver("evt_2", "shop"), http.StatusOK, resultProcessed)
	s.want(deliver("evt_2", "mail"), http.StatusOK, resultProcessed)
	s.want(deliver("odd id: ü", "shop"), http.StatusOK, resultProcessed)
	long := strings.Repeat("long", 100)
	s.want(deliver(long, "shop"), http.StatusOK, resultProcessed)
	a.answer(status(http.StatusInternalServerError))
	s.want(deliver("evt_3", "shop"), http.StatusInternalServerError, resultFailed)
	a.answer(nil)

	t.Run("inspect", func(t *testing.T) {
		got := at("inspect", "evt_1")
		for _, want := range []string{"key            :stripe:shop:evt_1\n", "attempts       1\n", "duplicates     1\n", "status         200\n",
			"answered as a duplicate", "charge.succeeded", "store          memory\n"} {
			got.want(t, 0, want, "")
		}
		at("inspect", ":stripe:shop:evt_1").want(t, 0, "duplicates     1\n", "")
		at("inspect", "evt_3").want(t, 0, "Its next delivery is processed", "")
		at("inspect", "odd id: ü").want(t, 0, ":stripe:shop:odd%20id%3A%20%C3%BC", "")
		at("inspect", "odd%20id%3A%20%C3%BC").want(t, 0, "odd%20id", "")
		at("inspect", long).want(t, 0, "its beginning  longlong", "")
		at("inspect", "evt_2").want(t, 0, "2 keys have this event ID", "")
		at("inspect", "evt_unknown").want(t, 1, "", "neither as a key nor as an event ID")
		at("inspect", ":stripe:shop:evt_unknown").want(t, 1, "", "neither as a key nor as an event ID")
		var e eventJSON
		if err := json.Unmarshal([]byte(at("inspect", "evt_1", "--json").out), &e); err != nil || e.Duplicates != 1 {
			t.Errorf("%v %+v", err, e)
		}
		if lines := strings.Count(at("inspect", "evt_2", "--json").out, "\n"); lines != 2 {
			t.Errorf("%d lines for two keys", lines)
		}
	})

	t.Run("list", func(t *testing.T) {
		at("list").want(t, 0, "STATE      ATTEMPTS  DUPLICATES  STATUS", "")
		at("list", "--state", "failed").want(t, 0, ":stripe:shop:evt_3", "")
		got := at("list", "--state", "failed")
		if strings.Contains(got.out, "evt_1") {
			t.Errorf("listed a processed event: %s", got.out)
		}
		at("list", "--provider", "github").want(t, 0, "", "No such records.")
		at("list", "--prefix", ":stripe:mail").want(t, 0, ":stripe:mail:evt_2", "")
		got = at("list", "--limit", "2")
		got.want(t, 0, "", "--cursor ")
		seen := strings.Count(got.out, ":stripe:")
		for strings.Contains(got.stderr, "--cursor ") {
			cursor := strings.Fields(strings.SplitAfter(got.stderr, "--cursor ")[1])[0]
			got = at("list", "--limit", "2", "--cursor", cursor)
			seen += strings.Count(got.out, ":stripe:")
		}
		if all := strings.Count(at("list", "--all", "--json").out, "\n"); all != 6 || seen != 6 {
			t.Errorf("listed %d with --all and %d by pages, want 6", all, seen)
		}
		at("list", "--limit", "0").want(t, exitUsage, "", "1 to 1000")
		at("list", "--limit", "1000000000").want(t, exitUsage, "", "1 to 1000")
		at("list", "--state", "asleep").want(t, exitUsage, "", "processing, processed, failed")
		at("list", "--cursor", "nonsense").want(t, exitUsage, "", "begin again without it")
	})

	t.Run("stats", func(t *testing.T) {
		got := at("stats")
		got.want(t, 0, "stripe    5          1       0", "")
		got.want(t, 0, "store memory         answers in ", "")
		var stats statsJSON
		if err := json.Unmarshal([]byte(at("stats", "--json").out), &stats); err != nil || stats.Providers["stripe"]["failed"] != 1 {
			t.Errorf("%v %+v", err, stats)
		}
	})

	t.Run("forget", func(t *testing.T) {
		at("forget", "evt_unknown").want(t, 1, "", "no record of")
		at("forget", "evt_2").want(t, 1, "", "Name one by its key")
		at("forget", ":stripe:mail:evt_2").want(t, 0, "Forgotten: :stripe:mail:evt_2 (processed; attempts: 1, duplicates: 0)", "")
		at("forget", "evt_1").want(t, 0, "let the provider send it again", "")
		at("inspect", "evt_1").want(t, 1, "", "no record of")
		s.want(deliver("evt_1", "shop"), http.StatusOK, resultProcessed)
		s.logs(`"an event was forgotten`, `"user_agent":"caddy webhook-dedup"`)

		hold := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(hold) })
		defer letGo()
		a.answer(func(http.ResponseWriter, *http.Request) { <-hold })
		running := make(chan struct{})
		go func() {
			defer close(running)
			deliver("evt_running", "shop")
		}()
		a.await(t, 8, false)
		at("inspect", "evt_running").want(t, 0, "It is being processed", "")
		at("forget", "evt_running").want(t, 1, "", "--force")
		at("forget", "evt_running").want(t, 1, "", "beside that run")
		at("forget", "evt_running", "--force", "--json").want(t, 0, `"state":"processing"`, "")
		letGo()
		<-running
	})
}

func TestCommandWatch(t *testing.T) {
	a := newApp(t, nil)
	s, address := startWithAdmin(t, a, memoryStore, guarded())
	watching := func(args ...string) chan ran {
		done := make(chan ran)
		go func() {
			done <- runCommand(t, t.Context(), "", append([]string{"watch", "--for", "3s", "--address", address}, args...)...)
		}()
		return done
	}
	plain, asJSON, only := watching(), watching("--json"), watching("--result", "invalid_signature")
	time.Sleep(time.Second)
	for range 3 {
		s.deliver("evt_watched")
	}
	forged := event(t, "evt_forged")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	s.want(s.send(forged), http.StatusUnauthorized, resultInvalidSignature)
	got := <-plain
	for _, want := range []string{"processed          stripe      evt_watched  charge.succeeded  attempt 1  200 in ", "duplicate          stripe",
		"invalid_signature  stripe      -", "/s  processed 1  duplicate 2  invalid_signature 1\n"} {
		got.want(t, 0, want, "")
	}
	got = <-asJSON
	got.want(t, 0, `"result":"duplicate"`, "")
	got.want(t, 0, `"per_second":{`, "")
	for line := range strings.Lines(got.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if got := <-only; strings.Contains(got.out, "evt_watched") || !strings.Contains(got.out, "invalid_signature  stripe") {
		t.Errorf("--result is not kept: %s", got.out)
	}
	runCommand(t, t.Context(), "", "watch", "--result", "luck").want(t, exitUsage, "", "allowed are processed, ")
}

func TestRecentDeliveriesAreBounded(t *testing.T) {
	r := &recent{process: "p", totals: map[result]uint64{}}
	h := &Handler{recent: r}
	h.spec.ID = "stripe"
	for i := range 3 * maxRecent {
		d := &delivery{h: h, result: resultProcessed, claimedEvent: claimedEvent{eventID: fmt.Sprint(i)}, r: httptest.NewRequest("POST", "/", nil)}
		d.note()
	}
	answer := r.since(10, false, 100)
	if len(answer.Deliveries) != 100 || answer.Missed != 2*maxRecent-10 || answer.Deliveries[0].EventID != fmt.Sprint(2*maxRecent) {
		t.Errorf("%d deliveries from %s, %d missed", len(answer.Deliveries), answer.Deliveries[0].EventID, answer.Missed)
	}
	if answer.Cursor != fmt.Sprintf("p.%d", 2*maxRecent+100) || answer.Totals[resultProcessed] != 3*maxRecent {
		t.Errorf("cursor %s, totals %v", answer.Cursor, answer.Totals)
	}
	if answer := r.since(0, true, 5); len(answer.Deliveries) != 5 || answer.Deliveries[4].EventID != fmt.Sprint(3*maxRecent-1) {
		t.Errorf("the latest: %+v", answer.Deliveries)
	}
	if answer := r.since(1<<60, false, 5); len(answer.Deliveries) != 0 || answer.Cursor != fmt.Sprintf("p.%d", 3*maxRecent) {
		t.Errorf("from the future: %+v", answer)
	}
	d := &delivery{h: h, result: resultProcessed, r: httptest.NewRequest("POST", "/", nil)}
	if n := testing.AllocsPerRun(100, d.note); n > 0 {
		t.Errorf("noting a delivery allocates %v times", n)
	}
}

func TestAdminAPIOfRecentDeliveries(t *testing.T) {
	start(t, newApp(t, nil), memoryStore, guarded())
	for target, want := range map[string]string{
		"?after=x":    "not a cursor",
		"?after=x.y":  "not a cursor",
		"?limit=-1":   "0 to 1024",
		"?limit=1025": "0 to 1024",
		"?since=1":    "unknown parameter",
	} {
		if code, answer := ask(t, "GET", "/webhook_dedup/deliveries"+target); code != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer["error"]), want) {
			t.Errorf("%s: %d %v", target, code, answer)
		}
	}
	if code, answer := ask(t, "GET", "/webhook_dedup/deliveries?after=earlier.7&limit=3"); code != http.StatusOK || len(answer["deliveries"].([]any)) > 3 {
		t.Errorf("a cursor of an earlier process: %d %v", code, answer)
	}
}

// TestCommandsWithoutAnEndpoint: each failure has its exit status and says what to do.
func TestCommandsWithoutAnEndpoint(t *testing.T) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	off := write("off.Caddyfile", "{\nadmin off\n}\n")
	if err := os.Rename(off, filepath.Join(dir, "Caddyfile.off")); err != nil {
		t.Fatal(err)
	}
	off = filepath.Join(dir, "Caddyfile.off")
	l, address := listen(t)
	other := &http.Server{Handler: http.NotFoundHandler()}
	go other.Serve(l)
	t.Cleanup(func() { other.Close() })
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nobody listens", []string{"stats", "--address", "127.0.0.1:1"}, exitUnreachable, "Is Caddy running?"},
		{"nobody listens, of watch", []string{"watch", "--address", "127.0.0.1:1"}, exitUnreachable, "'admin off'"},
		{"no such socket", []string{"list", "--address", "unix/" + dir + "/none"}, exitUnreachable, "--config"},
		{"not webhook_dedup", []string{"inspect", "x", "--address", address}, exitUnreachable, "without webhook_dedup"},
		{"no address", []string{"inspect", "x", "--address", "localhost"}, exitUsage, "host:port and unix//path"},
		{"a range", []string{"inspect", "x", "--address", "localhost:1-2"}, exitUsage, "host:port and unix//path"},
		{"admin off in the config", []string{"stats", "--config", off}, exitUsage, "turns the admin endpoint off"},
		{"no config", []string{"stats", "--config", dir + "/none.json"}, exitUsage, "no such file"},
		{"adapter without config", []string{"stats", "--adapter", "caddyfile"}, exitUsage, "without --config"},
		{"no event", []string{"inspect"}, exitUsage, "one key or event ID"},
		{"two events", []string{"forget", "a", "b"}, exitUsage, "one key or event ID"},
		{"an argument", []string{"stats", "now"}, exitUsage, "takes flags only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runCommand(t, t.Context(), "", c.args...).want(t, c.code, "", c.want)
		})
	}
}

func TestCommandsFindTheEndpointInTheConfig(t *testing.T) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf("{\nadmin \"unix/%s|0600\"\nauto_https off\npersist_config off\n}\n", filepath.Join(dir, "admin"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	adapted, err := adapt(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { caddy.Stop() })
	// It answers, and has nothing to tell.
	runCommand(t, t.Context(), "", "stats", "--config", config).want(t, exitUnreachable, "", "the running configuration has no webhook_dedup")
}

func TestCommandsWhenTheStoreIsDown(t *testing.T) {
	l, dead := listen(t)
	l.Close()
	_, address := startWithAdmin(t, newApp(t, nil), "webhook_dedup {\nstore redis {\nurl redis://"+dead+"\n}\n}", guarded())
	for _, args := range [][]string{{"list"}, {"inspect", "evt_1"}, {"inspect", ":stripe:x:evt_1"}, {"forget", "evt_1"}} {
		runCommand(t, t.Context(), "", append(args, "--address", address)...).want(t, exitStore, "", "the redis store failed")
	}
	got := runCommand(t, t.Context(), "", "stats", "--address", address)
	got.want(t, exitStore, "FAILED: ", "a store failed")
}

func TestCommandsCanBeInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // answers nobody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	runCommand(t, ctx, "", "list", "--address", l.Addr().String()).want(t, exitInterrupted, "", "interrupted")
}
