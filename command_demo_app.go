package webhookdedup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// demoApp is a small application that knows nothing of webhook_dedup. It does what it is told for an event, and keeps
// count of its runs.
type demoApp struct {
	address string
	server  *http.Server
	ended   chan struct{}
	stop    context.Context // its end ends all runs

	mu      sync.Mutex
	tasks   map[string]demoTask
	runs    map[string][]demoRun
	running int
}

// demoTask is what the application does for an event.
type demoTask struct {
	takes     time.Duration
	failFirst int // the status of the first run; 0: it succeeds
}

// demoRun is one run of the application.
type demoRun struct {
	attempt  string // Webhook-Dedup-Attempt, as the proxy sent it
	status   int
	took     time.Duration
	finished bool // it came to its end; false: it was broken off, or still runs
}

func startDemoApp(ctx context.Context) (*demoApp, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the application: %w", err)
	}
	a := &demoApp{
		address: l.Addr().String(),
		ended:   make(chan struct{}),
		stop:    ctx,
		tasks:   map[string]demoTask{},
		runs:    map[string][]demoRun{},
	}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(a.ended)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			l.Close() // every delivery fails from now on, and the table shows it
		}
	}()
	return a, nil
}

func (a *demoApp) close() {
	_ = a.server.Close() // nothing depends on connections that are left
	<-a.ended
}

// expect tells the application what to do for an event.
func (a *demoApp) expect(event string, t demoTask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks[event] = t
}

// ran returns the runs for an event.
func (a *demoApp) ran(event string) []demoRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]demoRun(nil), a.runs[event]...)
}

// stillRunning returns how many runs have not ended.
func (a *demoApp) stillRunning() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

func (a *demoApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var event struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		event.ID = "" // a run all the same
	}
	a.mu.Lock()
	task, n := a.tasks[event.ID], len(a.runs[event.ID])
	a.runs[event.ID] = append(a.runs[event.ID], demoRun{attempt: r.Header.Get(attemptHeader)})
	a.running++
	a.mu.Unlock()

	finished := false
	timer := time.NewTimer(task.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		finished = true
	case <-r.Context().Done(): // what a plain reverse_proxy does when the provider hangs up
	case <-a.stop.Done():
	}
	status := http.StatusOK
	if n == 0 && task.failFirst != 0 {
		status = task.failFirst
	}
	a.mu.Lock()
	run := &a.runs[event.ID][n]
	run.status, run.took, run.finished = status, time.Since(began), finished
	a.running--
	a.mu.Unlock()
	w.WriteHeader(status)
}
