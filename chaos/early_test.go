package chaos

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedup/caddy-webhook-dedup/chaos/harness"
)

// An application that answers before it reads leaves the proxy's transport reading the body after the delivery is over.
// Many 10 MB deliveries at once must not find each other's bytes in it.
func TestEarlyAnswerMixesNoBodies(t *testing.T) {
	const size, atOnce, rounds = 10_000_000, 12, 3
	var foreign, early atomic.Int64
	app := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expected := fill(r.Header.Get("Chaos-Event"), size)
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Length", "2")
		io.WriteString(w, "ok")
		control.Flush()
		early.Add(1)
		// Slowly, so that others are served in the meantime; until the proxy stops sending.
		buf := make([]byte, 256<<10)
		for at := 0; ; {
			n, err := r.Body.Read(buf)
			if at+n > size || !bytes.Equal(buf[:n], expected[at:at+n]) {
				foreign.Add(1)
			}
			at += n
			if err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}))
	st := newStage(t, setting{app: app, lines: "max_body 12MiB\n" + patient})
	for round := range rounds {
		var deliveries sync.WaitGroup
		for i := range atOnce {
			deliveries.Go(func() {
				id := fmt.Sprintf("evt_early_%d_%d", round, i)
				event := harness.Event{ID: id, Body: fill(id, size)}
				r := st.provider.Request(event)
				r.Header.Set("Chaos-Event", id)
				want(t, id, st.provider.Do(r), 200, "processed")
				want(t, id+" again", st.provider.Deliver(event), 200, "duplicate")
			})
		}
		deliveries.Wait()
	}
	if n := foreign.Load(); n != 0 {
		t.Errorf("%d reads found bytes that are not of their delivery", n)
	}
	if n := early.Load(); n != atOnce*rounds {
		t.Errorf("%d runs, want %d", n, atOnce*rounds)
	}
}

// fill returns an event of that size which has its ID all over it.
func fill(id string, size int) []byte {
	body := make([]byte, 0, size)
	body = fmt.Appendf(body, `{"id":%q,"type":"large","pad":"`, id)
	for len(body) < size-2 {
		pad := id + " "
		body = append(body, pad[:min(len(pad), size-2-len(body))]...)
	}
	return append(body, `"}`...)
}
