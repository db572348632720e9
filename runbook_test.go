package webhookdedup

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// These tests take the steps that docs/runbook.md tells an operator to take.

// TestRunbookConfigurations: what it shows can be loaded.
func TestRunbookConfigurations(t *testing.T) {
	text, err := os.ReadFile("docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```caddyfile\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("no configuration")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		config, err := adapt("{\nadmin off\n}\n:8080 {\n" + block + "}\n")
		if err != nil {
			t.Fatalf("%v in:\n%s", err, block)
		}
		var parsed caddy.Config
		if err := json.Unmarshal(config, &parsed); err != nil {
			t.Fatal(err)
		}
		t.Setenv("OLD_REDIS_URL", "redis://old.example.com")
		t.Setenv("NEW_REDIS_URL", "redis://new.example.com")
		if err := caddy.Validate(&parsed); err != nil {
			t.Errorf("%v in:\n%s", err, block)
		}
	}
}

func TestRunbookFindForgetAndSendAgain(t *testing.T) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin")
	a := newApp(t, status(http.StatusInternalServerError))
	url := endpoint(t, a, "admin unix/"+socket+"\n"+memoryStore, guarded()) + "/stripe"
	at := func(args ...string) ran {
		t.Helper()
		return runCommand(t, t.Context(), "", append(args, "--address", "unix/"+socket)...)
	}
	send := func(code int, args ...string) ran {
		t.Helper()
		t.Setenv(secretEnv, testSecret)
		got := runCommand(t, t.Context(), "", append([]string{"send", "--provider", "stripe", "--url", url, "--id", "evt_order_1001"}, args...)...)
		got.want(t, code, "", "")
		return got
	}
	// The application failed, then worked; the provider came twice more.
	send(exitFailed)
	at("list", "--state", "failed").want(t, 0, "evt_order_1001", "")
	a.answer(nil)
	send(0)
	send(0, "--expect", "duplicate", "--copies", "2")

	got := at("inspect", "evt_order_1001")
	for _, want := range []string{"state          processed\n", "attempts       2\n", "duplicates     2\n"} {
		got.want(t, 0, want, "")
	}
	at("forget", "evt_order_1001").want(t, 0, "Forgotten: ", "")
	send(0)
	a.wantRuns(t, 3)
	at("inspect", "evt_order_1001").want(t, 0, "attempts       1\n", "")
	at("watch", "--for", "2s").want(t, 0, "evt_order_1001", "")
}

func TestRunbookObserveThenEnforce(t *testing.T) {
	a := newApp(t, nil)
	s := start(t, a, memoryStore, guarded("mode observe"))
	for i, want := range []string{"observe; processed", "observe; duplicate"} {
		if g := s.deliver("evt_1"); g.status != http.StatusOK || g.result != want {
			t.Errorf("delivery %d: %d %q", i, g.status, g.result)
		}
	}
	forged := event(t, "evt_2")
	forged.Header.Set("Stripe-Signature", "t=1,v1=00")
	if g := s.send(forged); g.status != http.StatusOK || g.result != "observe; invalid_signature" {
		t.Errorf("a wrong secret: %d %q", g.status, g.result)
	}
	a.wantRuns(t, 3)
	s.load(memoryStore, guarded())
	s.want(s.deliver("evt_1"), http.StatusOK, resultDuplicate) // remembered from observing
	a.wantRuns(t, 3)
}

func TestRunbookRotateSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(secret string) {
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(testSecret)
	a := newApp(t, nil)
	block := func(secrets string) string {
		return "webhook_dedup stripe {\nsecret " + secrets + "\n}\nreverse_proxy {app}\n"
	}
	deliver := func(s *site, id, secret string) got {
		return s.send(stripeRequest(t, fmt.Sprintf(`{"id":%q}`, id), secret, time.Now()))
	}
	const fresh = "whsec_the-fresh-secret"
	s := start(t, a, memoryStore, block("{file."+file+"}"))
	s.want(deliver(s, "evt_1", testSecret), http.StatusOK, resultProcessed)
	// Both, before the provider is told.
	if err := os.WriteFile(file+".new", []byte(fresh), 0o600); err != nil {
		t.Fatal(err)
	}
	s.load(memoryStore, block("{file."+file+".new} {file."+file+"}"))
	s.want(deliver(s, "evt_2", testSecret), http.StatusOK, resultProcessed)
	s.want(deliver(s, "evt_3", fresh), http.StatusOK, resultProcessed)
	// The old one goes when nothing is signed with it any more.
	s.load(memoryStore, block("{file."+file+".new}"))
	s.want(deliver(s, "evt_4", testSecret), http.StatusUnauthorized, resultInvalidSignature)
	s.want(deliver(s, "evt_5", fresh), http.StatusOK, resultProcessed)
	// A file that changes under an unchanged configuration is read at the next load.
	if err := os.WriteFile(file+".new", []byte(testSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	s.load(memoryStore, block("{file."+file+".new}"))
	s.want(deliver(s, "evt_6", testSecret), http.StatusOK, resultProcessed)
}

// TestRunbookMove moves a route to another store, and to another key in the same store: the old handler stands in front
// of the new one until what only the old one knows is forgotten anyway.
func TestRunbookMove(t *testing.T) {
	dir := t.TempDir()
	store := func(name string) string { return "store file {\npath " + filepath.Join(dir, name) + "\n}" }
	for name, handlers := range map[string][2]string{
		"another store": {store("old.db"), store("new.db")},
		"another key":   {"scope the-old-one", "scope the-new-one"},
	} {
		t.Run(name, func(t *testing.T) {
			directive := func(line string) string {
				return "webhook_dedup stripe {\nsecret {env.STRIPE_SECRET}\n" + line + "\n}\n"
			}
			before, after := directive(handlers[0]), directive(handlers[1])
			const proxy = "reverse_proxy {app}\n"
			a := newApp(t, nil)
			s := start(t, a, memoryStore, before+proxy)
			s.want(s.deliver("evt_old"), http.StatusOK, resultProcessed)

			s.load(memoryStore, "route {\n"+before+after+proxy+"}")
			s.want(s.deliver("evt_old"), http.StatusOK, resultDuplicate)
			s.want(s.deliver("evt_both"), http.StatusOK, resultProcessed)
			s.want(s.deliver("evt_both"), http.StatusOK, resultDuplicate)
			a.wantRuns(t, 2)
			a.answer(status(http.StatusInternalServerError))
			s.want(s.deliver("evt_retried"), http.StatusInternalServerError, resultFailed)
			a.answer(nil)
			s.want(s.deliver("evt_retried"), http.StatusOK, resultProcessed)
			a.wantRuns(t, 4)

			// One that is under way when the old handler goes.
			hold := make(chan struct{})
			a.answer(func(http.ResponseWriter, *http.Request) { <-hold })
			answers := make(chan got, 2)
			go func() { answers <- s.deliver("evt_under_way") }()
			a.await(t, 5, false)
			s.load(memoryStore, after+proxy)
			go func() { answers <- s.deliver("evt_under_way") }()
			time.Sleep(50 * time.Millisecond)
			close(hold)
			for range 2 {
				if g := <-answers; g.status != http.StatusOK {
					t.Errorf("%d %q (%v)", g.status, g.result, g.err)
				}
			}
			a.answer(nil)
			for _, id := range []string{"evt_both", "evt_retried", "evt_under_way"} {
				s.want(s.deliver(id), http.StatusOK, resultDuplicate)
			}
			a.wantRuns(t, 5)
			if last := a.all()[4]; last.key != "stripe:evt_under_way" || last.attempt != "1" || strings.Contains(last.key, ",") {
				t.Errorf("the application was told %+v", last)
			}
		})
	}
}
