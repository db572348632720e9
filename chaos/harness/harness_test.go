package harness

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The expected signature was made with openssl:
//
//	printf '1614556800.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test
func TestSignature(t *testing.T) {
	const want = "e326b9127f526dab808bd39e79a44ab61b0dc0517386b06a7abf563ce203409b"
	if got := StripeMAC("whsec_test", "1614556800", []byte(`{"id":"evt_1"}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLedgerRecordsRuns(t *testing.T) {
	ledger := NewLedger(t)
	provider := NewStripe(t, "http://"+ledger.Address, "secret", false)
	ledger.Plan("evt_1", Reply{Status: 500}, Reply{Reset: true}, Reply{Half: true}, Reply{})
	event := NewEvent("evt_1")
	if a := provider.Deliver(event); a.Status != 500 || a.Accepted() {
		t.Errorf("first: %s", a)
	}
	for range 2 {
		if a := provider.Deliver(event); a.Err == nil || a.Accepted() {
			t.Errorf("broken connection: %s", a)
		}
	}
	if a := provider.Deliver(event); !a.Accepted() || a.Body != "application answers evt_1" {
		t.Errorf("fourth: %s %q", a, a.Body)
	}
	runs := ledger.Runs("evt_1")
	if len(runs) != 4 || runs[3].Number != 4 || runs[3].Size != len(event.Body) || ledger.MostAtOnce() != 1 {
		t.Errorf("ledger: %d runs, %+v", len(runs), runs)
	}
}

func TestLedgerNoticesThatItsCallerHasGone(t *testing.T) {
	ledger := NewLedger(t)
	provider := NewStripe(t, "http://"+ledger.Address, "secret", false)
	ledger.Always(Reply{Delay: 5 * time.Second})
	if err := provider.HangUp(NewEvent("evt_1"), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if run := ledger.WaitEnd(t, "evt_1", 1); run.Finished {
		t.Error("the run counts as finished although its caller hung up")
	}
}

func TestRedisFreezesAndForgets(t *testing.T) {
	redis := NewRedis(t)
	if _, err := redis.Do("SET", "a", "1"); err != nil {
		t.Fatal(err)
	}
	if n := redis.Keys(t); n != 1 {
		t.Errorf("%d keys", n)
	}
	if n := redis.Clients(t); n != 0 {
		t.Errorf("%d clients", n)
	}
	redis.Freeze(t)
	answered := make(chan string)
	go func() {
		answer, _ := redis.Do("PING")
		answered <- answer
	}()
	select {
	case answer := <-answered:
		t.Errorf("a frozen server answered %q", answer)
	case <-time.After(300 * time.Millisecond):
	}
	redis.Thaw(t)
	if answer := <-answered; answer != "PONG" {
		t.Errorf("thawed: %q", answer)
	}
	redis.Kill()
	redis.Start(t)
	if n := redis.Keys(t); n != 0 {
		t.Errorf("%d keys survived", n)
	}
}

func TestNetworkCutsAndMends(t *testing.T) {
	redis := NewRedis(t)
	network := NewNetwork(t, redis.Address)
	through := &Redis{Address: network.Address}
	ping := func() string {
		answer, err := through.Do("PING")
		if err != nil {
			return err.Error()
		}
		return answer
	}
	if got := ping(); got != "PONG" {
		t.Errorf("connected: %s", got)
	}
	network.Cut()
	if got := ping(); got == "PONG" {
		t.Error("cut, and yet answered")
	}
	network.Blackout()
	late := make(chan string)
	go func() { late <- ping() }()
	select {
	case got := <-late:
		t.Errorf("answered through a blackout: %s", got)
	case <-time.After(300 * time.Millisecond):
	}
	network.Mend()
	if got := <-late; got != "PONG" {
		t.Errorf("after the blackout: %s", got)
	}
}

func TestCaddyfileIsIndented(t *testing.T) {
	c := &Caddy{Admin: "127.0.0.1:1", Listen: "127.0.0.1:2"}
	got := c.Render(Config{App: "store memory", Site: "respond ok {\n\tclose\n}", Mark: "7"})
	for _, want := range []string{"\twebhook_dedup {\n\t\tstore memory\n\t}\n", "http://:2 {\n", "\t\tclose\n\t}\n", `Config-Mark "7"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestCopiesComeAtOnce(t *testing.T) {
	ledger := NewLedger(t)
	ledger.Always(Reply{Delay: 200 * time.Millisecond})
	provider := NewStripe(t, "http://"+ledger.Address, "secret", false)
	for _, a := range provider.Copies(NewEvent("evt_1"), 4) {
		if a.Status != http.StatusOK {
			t.Errorf("%s", a)
		}
	}
	if n := ledger.MostAtOnce(); n != 4 {
		t.Errorf("%d at once", n)
	}
}
