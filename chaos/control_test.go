package chaos

import (
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// The control: the same stage without webhook_dedup. If the books did not show what goes wrong there, they would prove
// nothing elsewhere.
func TestWithoutTheModule(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(protocol(http2), func(t *testing.T) {
			t.Parallel()
			st := prepare(t, setting{http2: http2})
			st.config.App, st.config.Site = "", "reverse_proxy "+st.ledger.Address
			st.Start(t, st.config)

			// Copies all run, at the same time.
			st.ledger.Always(harness.Reply{Delay: 300 * time.Millisecond})
			for _, a := range st.provider.Copies(harness.NewEvent("evt_copies"), 3) {
				want(t, "a copy", a, 200, "")
			}
			if runs := st.ledger.Runs("evt_copies"); len(runs) != 3 || st.ledger.MostAtOnce() < 2 {
				t.Errorf("runs: %s, %d at once", describe(runs), st.ledger.MostAtOnce())
			}

			// A provider that hangs up cancels the run.
			slow := harness.NewEvent("evt_slow")
			st.ledger.Plan(slow.ID, harness.Reply{Delay: 3 * time.Second})
			if err := st.provider.HangUp(slow, 500*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if run := st.ledger.WaitEnd(t, slow.ID, 1); run.Finished {
				t.Error("the run went on although the provider had gone")
			}

			// Reload, SIGTERM, kill -9 and restart are what they are called.
			next := st.config
			next.Mark = "next"
			if err := st.Load(next); err != nil {
				t.Fatal(err)
			}
			// More than once, since the old configuration closes the connections that are idle.
			marked := st.provider.UntilAccepted(harness.NewEvent("evt_mark"), 50*time.Millisecond, 10*time.Second)
			if a := marked[len(marked)-1]; a.Header.Get("Config-Mark") != "next" {
				t.Errorf("the configuration was not replaced: %s, %v", a, a.Header)
			}
			if n := st.Goroutines(t); n < 5 {
				t.Errorf("%d goroutines", n)
			}
			if out, err := st.Validate(t, st.config); err != nil {
				t.Errorf("validate: %v\n%s", err, out)
			}
			st.Terminate(t)
			st.WaitEnd(t, 20*time.Second)
			st.Restart(t)
			st.Kill()
			if a := st.provider.Deliver(slow); a.Err == nil {
				t.Errorf("a dead Caddy answered: %s", a)
			}
		})
	}
}
