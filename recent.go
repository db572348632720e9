package webhookdedup

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxRecent is how many deliveries are remembered for `caddy webhook-dedup watch`.
const maxRecent = 1024

// recent has the last deliveries of this process, whatever their result: also those that left no record in a store. It is
// written on every delivery, so it only copies; what is shown is made when somebody asks.
type recent struct {
	process string // tells cursors of an earlier process apart

	mu     sync.Mutex
	ring   [maxRecent]seen
	count  uint64 // of all deliveries so far; the next one's place in the ring
	totals map[result]uint64
}

// seen is one delivery.
type seen struct {
	at                      time.Time
	provider, mode          string
	eventID, eventType, key string
	result                  result
	attempt, status         int
	duration, upstream      time.Duration
	cause                   error
}

var recentOfProcess = sync.OnceValue(func() *recent {
	return &recent{process: strconv.FormatInt(time.Now().UnixNano(), 36), totals: map[result]uint64{}}
})

// note remembers the delivery.
func (d *delivery) note() {
	if d.h.recent == nil || d.result == "" || d.isPlain() {
		return
	}
	r := d.h.recent
	s := seen{
		at: d.arrived, provider: d.h.spec.ID, mode: d.h.Mode, eventID: d.eventID, eventType: d.eventType, key: d.key, result: d.result,
		attempt: d.record.Attempts, status: d.status, duration: time.Since(d.arrived), upstream: d.upstream, cause: d.cause,
	}
	r.mu.Lock()
	r.ring[r.count%maxRecent] = s
	r.count++
	r.totals[d.result]++
	r.mu.Unlock()
}

// deliveryJSON is a delivery as the admin API shows it.
type deliveryJSON struct {
	Time           time.Time `json:"time"`
	Provider       string    `json:"provider"`
	Result         string    `json:"result"`
	Mode           string    `json:"mode"`
	EventID        string    `json:"event_id"`
	EventType      string    `json:"event_type"`
	Key            string    `json:"key"`
	Attempt        int       `json:"attempt"`
	UpstreamStatus int       `json:"upstream_status"`
	DurationMS     float64   `json:"duration_ms"`
	UpstreamMS     float64   `json:"upstream_ms"`
	Error          string    `json:"error,omitempty"`
}

// recentJSON is the deliveries after a cursor, oldest first.
type recentJSON struct {
	Deliveries []deliveryJSON `json:"deliveries"`
	// Cursor is where to go on.
	Cursor string `json:"cursor"`
	// Missed is how many deliveries after the cursor are forgotten already.
	Missed uint64 `json:"missed"`
	// Totals counts the deliveries of this process up to now by result.
	Totals map[result]uint64 `json:"totals"`
}

// deliveries returns the latest ones, or those after a cursor. A cursor of an earlier process starts anew.
func (adminAPI) deliveries(parameters url.Values) (any, error) {
	for name := range parameters {
		if name != "after" && name != "limit" {
			return nil, apiError(http.StatusBadRequest, fmt.Errorf("unknown parameter %q; allowed are after, limit", name))
		}
	}
	limit := uint64(100)
	if parameters.Has("limit") {
		n, err := strconv.Atoi(parameters.Get("limit"))
		if err != nil || n < 0 || n > maxRecent {
			return nil, apiError(http.StatusBadRequest, fmt.Errorf("limit is %q; allowed are 0 to %d", parameters.Get("limit"), maxRecent))
		}
		limit = uint64(n)
	}
	r := recentOfProcess()
	after, anew := uint64(0), true
	if cursor := parameters.Get("after"); cursor != "" {
		process, number, ok := strings.Cut(cursor, ".")
		n, err := strconv.ParseUint(number, 10, 64)
		if !ok || err != nil {
			return nil, apiError(http.StatusBadRequest, errors.New("after: not a cursor of an earlier answer; without one, the latest deliveries are shown"))
		}
		after, anew = n, process != r.process
	}
	return r.since(after, anew, limit), nil
}

// since returns at most limit deliveries from number after on, or the latest where it starts anew.
func (r *recent) since(after uint64, anew bool, limit uint64) recentJSON {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.count - min(r.count, maxRecent)
	answer := recentJSON{Deliveries: []deliveryJSON{}, Totals: map[result]uint64{}}
	switch {
	case anew:
		after = max(oldest, r.count-min(r.count, limit))
	case after > r.count:
		after = r.count
	case after < oldest:
		answer.Missed = oldest - after
		after = oldest
	}
	for ; after < r.count && uint64(len(answer.Deliveries)) < limit; after++ {
		answer.Deliveries = append(answer.Deliveries, r.ring[after%maxRecent].json())
	}
	for word, n := range r.totals {
		answer.Totals[word] = n
	}
	answer.Cursor = r.process + "." + strconv.FormatUint(after, 10)
	return answer
}

func (s *seen) json() deliveryJSON {
	d := deliveryJSON{
		Time: s.at.UTC(), Provider: s.provider, Result: string(s.result), Mode: s.mode, EventID: s.eventID, EventType: s.eventType, Key: s.key,
		Attempt: s.attempt, UpstreamStatus: s.status, DurationMS: milliseconds(s.duration), UpstreamMS: milliseconds(s.upstream),
	}
	if s.cause != nil {
		d.Error = s.cause.Error()
	}
	return d
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
