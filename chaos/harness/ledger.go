package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Run is one call of the application, as the application saw it.
type Run struct {
	Event    string // the event ID in the body; empty where there is none
	Number   int    // the how manieth run of that event, from 1
	Method   string
	Path     string
	Header   http.Header
	Size     int
	Digest   string // hex SHA-256 of the body
	Start    time.Time
	End      time.Time // zero while it runs
	Finished bool      // it came to its end with nobody having cancelled it
}

// Attempt is the Webhook-Dedup-Attempt that the run was given.
func (r Run) Attempt() string { return r.Header.Get("Webhook-Dedup-Attempt") }

// Reply says how the application deals with a run.
type Reply struct {
	Status int           // default 200
	Delay  time.Duration // work before the answer
	Until  chan struct{} // work until this is closed
	Header http.Header
	Body   string // default names the event
	Reset  bool   // reset the connection instead of answering
	Half   bool   // answer with half of the promised body, then reset
}

// Ledger is the application: it records every run and replies as it was told.
type Ledger struct {
	Address string

	mu      sync.Mutex
	runs    []*Run
	running map[string]int
	most    int // the most runs of one event at a time
	plans   map[string][]Reply
	always  Reply
}

// NewLedger starts an application that answers 200 to everything.
func NewLedger(t testing.TB) *Ledger {
	t.Helper()
	l := &Ledger{running: map[string]int{}, plans: map[string][]Reply{}}
	l.Address = Serve(t, l)
	return l
}

// Serve serves h on loopback until the test ends, and returns the address.
func Serve(t testing.TB, h http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

// Plan sets the replies to the first, second … run of an event; the last is used for all further runs.
func (l *Ledger) Plan(event string, replies ...Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plans[event] = replies
}

// Always sets the reply to every run without a plan.
func (l *Ledger) Always(reply Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.always = reply
}

// Runs returns the runs of one event so far, in order of their start.
func (l *Ledger) Runs(event string) []Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	var runs []Run
	for _, r := range l.runs {
		if r.Event == event {
			runs = append(runs, *r)
		}
	}
	return runs
}

// All returns all runs so far, in order of their start.
func (l *Ledger) All() []Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := make([]Run, len(l.runs))
	for i, r := range l.runs {
		runs[i] = *r
	}
	return runs
}

// Counts returns how often each event was run.
func (l *Ledger) Counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int{}
	for _, r := range l.runs {
		counts[r.Event]++
	}
	return counts
}

// Total is the number of all runs.
func (l *Ledger) Total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

// MostAtOnce is the largest number of runs of one event that ever ran at the same time.
func (l *Ledger) MostAtOnce() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// WaitStart waits until the nth run of event has begun.
func (l *Ledger) WaitStart(t testing.TB, event string, n int) {
	t.Helper()
	Eventually(t, 30*time.Second, fmt.Sprintf("run %d of %s has begun", n, event), func() bool {
		return len(l.Runs(event)) >= n
	})
}

// WaitEnd waits until the nth run of event is over, and returns it.
func (l *Ledger) WaitEnd(t testing.TB, event string, n int) Run {
	t.Helper()
	var run Run
	Eventually(t, 30*time.Second, fmt.Sprintf("run %d of %s is over", n, event), func() bool {
		runs := l.Runs(event)
		if len(runs) < n || runs[n-1].End.IsZero() {
			return false
		}
		run = runs[n-1]
		return true
	})
	return run
}

// ServeHTTP is the application.
func (l *Ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// A truncated delivery is what a proxy must never pass on; it is recorded under a name that no test expects.
		body = []byte(`{"id":"truncated body: ` + err.Error() + `"}`)
	}
	run, reply := l.begin(r, body)
	finished := work(r, reply)
	l.end(run, finished)

	status, text := reply.Status, reply.Body
	if status == 0 {
		status = http.StatusOK
	}
	if text == "" {
		text = "application answers " + run.Event
	}
	if reply.Reset {
		reset(w, "")
		return
	}
	if reply.Half {
		reset(w, fmt.Sprintf("HTTP/1.1 %d Fine\r\nContent-Length: %d\r\n\r\n%s", status, 2*len(text), text))
		return
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(status)
	io.WriteString(w, text)
}

func (l *Ledger) begin(r *http.Request, body []byte) (*Run, Reply) {
	digest := sha256.Sum256(body)
	var fields struct{ ID string }
	_ = json.Unmarshal(body, &fields) // what is not JSON has no event ID
	run := &Run{
		Event: fields.ID, Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(),
		Size: len(body), Digest: hex.EncodeToString(digest[:]), Start: time.Now(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = append(l.runs, run)
	for _, other := range l.runs {
		if other.Event == run.Event {
			run.Number++
		}
	}
	l.running[run.Event]++
	l.most = max(l.most, l.running[run.Event])
	plan := l.plans[run.Event]
	if len(plan) == 0 {
		return run, l.always
	}
	return run, plan[min(run.Number, len(plan))-1]
}

// work is the side effect; it reports whether nobody cancelled it.
func work(r *http.Request, reply Reply) bool {
	if reply.Until != nil {
		select {
		case <-reply.Until:
		case <-r.Context().Done():
			return false
		}
	}
	select {
	case <-time.After(reply.Delay):
		return true
	case <-r.Context().Done():
		return false
	}
}

func (l *Ledger) end(run *Run, finished bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run.End, run.Finished = time.Now(), finished
	l.running[run.Event]--
}

// reset sends text and then breaks the connection as a crashed process does.
func reset(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	io.WriteString(conn, text)
	if text != "" {
		time.Sleep(50 * time.Millisecond) // a reset overtakes what the other side has not read yet
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
