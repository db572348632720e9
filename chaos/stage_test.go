package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// secret signs all deliveries that are meant to be good; no log may hold it.
const secret = "whsec_correct-horse-battery-staple"

func TestMain(m *testing.M) {
	remove, err := harness.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	remove()
	os.Exit(code)
}

// patient keeps a busy machine from making the store too slow in tests that are about something else.
const patient = "store_timeout 4s"

// stores are the stores that must behave alike.
var stores = []string{"file", "redis"}

// eachStore runs a test on every store, in parallel with whatever else runs.
func eachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Helper()
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			test(t, store)
		})
	}
}

// setting is what a test wants of its stage; the zero value is the quickstart on the file store.
type setting struct {
	store  string // file or redis
	redis  string // URL of the redis, default that of a redis-server of the stage's own
	lines  string // subdirectives of webhook_dedup besides the secret
	global string // further global options
	site   string // lines of the site after the proxy, handle_errors say
	proxy  string // lines of the block of reverse_proxy
	app    string // address of the application, default that of the ledger
	http2  bool   // how the provider speaks to Caddy
}

// stage is one provider, one Caddy, one application and a store.
type stage struct {
	*harness.Caddy
	ledger   *harness.Ledger
	provider *harness.Stripe
	redis    *harness.Redis // nil with the file store
	config   harness.Config
}

func newStage(t *testing.T, s setting) *stage {
	t.Helper()
	st := prepare(t, s)
	st.Start(t, st.config)
	return st
}

// prepare is newStage but for the start of Caddy.
func prepare(t *testing.T, s setting) *stage {
	t.Helper()
	st := &stage{ledger: harness.NewLedger(t)}
	if s.store == "redis" && s.redis == "" {
		st.redis = harness.NewRedis(t)
		s.redis = st.redis.URL()
	}
	st.Caddy = harness.NewCaddy(t)
	st.provider = harness.NewStripe(t, st.URL+"/stripe", secret, s.http2)
	if s.app == "" {
		s.app = st.ledger.Address
	}
	st.config = harness.Config{
		App:    storeLines(st.Caddy, s),
		Global: s.global,
		Site: fmt.Sprintf("webhook_dedup stripe {\nsecret %s\n%s\n}\nreverse_proxy %s {\n%s\n}\n%s",
			secret, s.lines, s.app, s.proxy, s.site),
	}
	t.Cleanup(func() {
		for _, private := range []string{secret, harness.PrivateMark} {
			if st.Log.Contains(private) {
				t.Errorf("Caddy's log holds %q", private)
			}
		}
	})
	return st
}

func storeLines(c *harness.Caddy, s setting) string {
	if s.store == "redis" {
		return fmt.Sprintf("store redis {\nurl %s\n}", s.redis)
	}
	return fmt.Sprintf("store file {\npath %s\n}", filepath.Join(c.Files, "events.db"))
}

// want fails the test unless the provider was told that status and result.
func want(t *testing.T, what string, got harness.Answer, status int, result string) {
	t.Helper()
	if got.Err != nil || got.Status != status || got.Result != result {
		t.Errorf("%s: told %s; want %d %q", what, got, status, result)
	}
}

// wantRuns fails the test unless the application ran the event so often, never twice at a time, each run to its end.
func wantRuns(t *testing.T, l *harness.Ledger, event string, n int) {
	t.Helper()
	runs := l.Runs(event)
	if len(runs) != n {
		t.Errorf("%s ran %d times, want %d: %s", event, len(runs), n, describe(runs))
	}
	for _, run := range runs {
		if !run.Finished {
			t.Errorf("run %d of %s did not come to its end", run.Number, event)
		}
	}
	if most := l.MostAtOnce(); most > 1 {
		t.Errorf("one event was run by %d deliveries at a time", most)
	}
}

func describe(runs []harness.Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "\n\trun %d: attempt %q, %s to %s, finished %t", r.Number, r.Attempt(),
			r.Start.Format("15:04:05.000"), r.End.Format("15:04:05.000"), r.Finished)
	}
	return b.String()
}

// within fails the test if it took longer than limit.
func within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if took > limit {
		t.Errorf("%s took %s, at most %s is allowed", what, took.Round(time.Millisecond), limit)
	}
}
