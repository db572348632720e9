package webhookdedup

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
)

func init() {
	caddy.RegisterModule(adminAPI{})
}

const (
	adminPath    = "/webhook_dedup/"
	adminTimeout = 10 * time.Second // of one request to the admin API

	noRecord  = "no record of " // how the answer about an unknown key begins
	badCursor = "not one that an earlier page gave out under this configuration; begin again without it"
)

// adminAPI shows and forgets the events that the stores of the running configuration know. It is part of Caddy's admin
// endpoint and guarded like the rest of it:
//
//	GET    /webhook_dedup/events?state=&provider=&prefix=&event_id=&limit=&cursor=
//	GET    /webhook_dedup/events/{key}
//	DELETE /webhook_dedup/events/{key}?force=true
//	GET    /webhook_dedup/stats
//	GET    /webhook_dedup/deliveries?after=&limit=
//
// {key} is one percent-encoded segment.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.webhook_dedup",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes returns the routes of the admin API.
func (a adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: adminPath, Handler: caddy.AdminHandlerFunc(a.serve)}}
}

func (a adminAPI) serve(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	path := strings.TrimPrefix(r.URL.EscapedPath(), adminPath)
	segment, isKey := strings.CutPrefix(path, "events/")
	key, badKey := url.PathUnescape(segment)
	var answer any
	var err error
	switch {
	case path == "events" && r.Method == http.MethodGet:
		answer, err = a.list(ctx, r.URL.Query())
	case path == "stats" && r.Method == http.MethodGet:
		answer, err = a.stats(ctx)
	case path == "deliveries" && r.Method == http.MethodGet:
		answer, err = a.deliveries(r.URL.Query())
	case isKey && (badKey != nil || key == "" || strings.Contains(segment, "/")):
		err = apiError(http.StatusBadRequest, errors.New("the key must be one percent-encoded segment of the path"))
	case isKey && r.Method == http.MethodGet:
		answer, err = a.get(ctx, key)
	case isKey && r.Method == http.MethodDelete:
		answer, err = a.forget(ctx, key, r)
	case path == "events" || path == "stats" || path == "deliveries" || isKey:
		err = apiError(http.StatusMethodNotAllowed, fmt.Errorf("%s is not allowed here", r.Method))
	default:
		err = apiError(http.StatusNotFound, fmt.Errorf("nothing here; there are events, stats and deliveries below %s", adminPath))
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

// eventJSON is a record as the admin API shows it.
type eventJSON struct {
	Key        string     `json:"key"`
	Provider   string     `json:"provider"`
	Scope      string     `json:"scope"`
	EventID    string     `json:"event_id"`
	OriginalID string     `json:"original_id,omitempty"`
	EventType  string     `json:"event_type"`
	State      string     `json:"state"`
	Attempts   int        `json:"attempts"`
	Duplicates int64      `json:"duplicates"`
	FirstSeen  time.Time  `json:"first_seen"`
	Updated    time.Time  `json:"updated"`
	LeaseUntil *time.Time `json:"lease_until"`
	Status     int        `json:"status"`
	BodySHA256 string     `json:"body_sha256"`
	Store      string     `json:"store"`
}

func newEventJSON(r claim.Record, store string) eventJSON {
	key, _ := claim.SplitKey(r.Key)
	event := eventJSON{
		Key: r.Key, Provider: key.Provider, Scope: key.Scope, EventID: key.EventID, OriginalID: r.OriginalID,
		EventType: r.EventType, State: r.State.String(), Attempts: r.Attempts, Duplicates: r.Duplicates,
		FirstSeen: r.FirstSeen.UTC(), Updated: r.Updated.UTC(), Status: r.Status, Store: store,
	}
	if r.State == claim.Processing {
		until := time.Now().Add(r.Remaining).UTC().Truncate(time.Millisecond)
		event.LeaseUntil = &until
	}
	if r.BodySHA256 != ([32]byte{}) {
		event.BodySHA256 = hex.EncodeToString(r.BodySHA256[:])
	}
	return event
}

// pageJSON is one page of a list.
type pageJSON struct {
	Events []eventJSON `json:"events"`
	Cursor string      `json:"cursor"`
}

// list returns one page. Stores come one after the other; the cursor begins with the number of the one it belongs to.
func (adminAPI) list(ctx context.Context, parameters url.Values) (any, error) {
	q, err := parseQuery(parameters)
	if err != nil {
		return nil, apiError(http.StatusBadRequest, err)
	}
	handles, err := usedStores()
	if err != nil {
		return nil, err
	}
	at := 0
	if q.Cursor != "" {
		number, cursor, ok := strings.Cut(q.Cursor, ".")
		if at, err = strconv.Atoi(number); !ok || err != nil || at < 0 || at >= len(handles) {
			return nil, apiError(http.StatusBadRequest, errors.New("cursor: "+badCursor))
		}
		q.Cursor = cursor
	}
	answer := pageJSON{Events: []eventJSON{}}
	var page claim.Page
	err = withStore(handles[at], func(store claim.Store) error {
		page, err = store.List(ctx, q)
		return err
	})
	if err != nil {
		return nil, storeAPIError(handles[at], err)
	}
	for _, record := range page.Records {
		answer.Events = append(answer.Events, newEventJSON(record, handles[at].name))
	}
	switch {
	case page.Cursor != "":
		answer.Cursor = strconv.Itoa(at) + "." + page.Cursor
	case at+1 < len(handles):
		answer.Cursor = strconv.Itoa(at+1) + "."
	}
	return answer, nil
}

func parseQuery(parameters url.Values) (q claim.Query, err error) {
	for name := range parameters {
		if !slices.Contains([]string{"state", "provider", "prefix", "event_id", "limit", "cursor"}, name) {
			return q, fmt.Errorf("unknown parameter %q; allowed are state, provider, prefix, event_id, limit, cursor", name)
		}
	}
	q = claim.Query{
		Provider: parameters.Get("provider"),
		Prefix:   parameters.Get("prefix"),
		EventID:  parameters.Get("event_id"),
		Cursor:   parameters.Get("cursor"),
	}
	if word := parameters.Get("state"); word != "" {
		if q.State, err = claim.ParseState(word); err != nil {
			return q, fmt.Errorf("state: %w", err)
		}
	}
	if parameters.Has("limit") {
		q.Limit, err = strconv.Atoi(parameters.Get("limit"))
		if err != nil || q.Limit < 1 || q.Limit > 1000 {
			return q, fmt.Errorf("limit is %q; allowed are 1 to 1000", parameters.Get("limit"))
		}
	}
	return q, nil
}

// get returns one record in full.
func (adminAPI) get(ctx context.Context, key string) (any, error) {
	handle, record, err := find(ctx, key)
	if err != nil {
		return nil, err
	}
	return newEventJSON(record, handle.name), nil
}

// find looks for the record in all stores.
func find(ctx context.Context, key string) (*storeHandle, claim.Record, error) {
	handles, err := usedStores()
	if err != nil {
		return nil, claim.Record{}, err
	}
	for _, handle := range handles {
		var record claim.Record
		err := withStore(handle, func(store claim.Store) (err error) {
			record, err = store.Get(ctx, key)
			return err
		})
		if err == nil {
			return handle, record, nil
		}
		if !errors.Is(err, claim.ErrNotFound) {
			return nil, claim.Record{}, storeAPIError(handle, err)
		}
	}
	return nil, claim.Record{}, apiError(http.StatusNotFound,
		fmt.Errorf(noRecord+"%q; a key looks like environment:provider:scope:event_id, and ?event_id= finds one by its last part", key))
}

// forget removes a record, so that the next delivery of the event is processed.
func (adminAPI) forget(ctx context.Context, key string, r *http.Request) (any, error) {
	handle, record, err := find(ctx, key)
	if err != nil {
		return nil, err
	}
	if record.State == claim.Processing && record.Remaining > 0 && r.URL.Query().Get("force") != "true" {
		return nil, apiError(http.StatusConflict, errors.New(
			"the event is being processed: forgotten now, its next delivery would be processed beside that run; so that it may be processed twice; wait for its end, or repeat with force=true (--force on the command line)"))
	}
	shared := handle.acquire()
	shared.background.forget(key) // or it would be written once more
	handle.release()
	err = withStore(handle, func(store claim.Store) error {
		_, err := store.Forget(ctx, key)
		return err
	})
	if err != nil {
		return nil, storeAPIError(handle, err)
	}
	caddy.Log().Named("admin.api.webhook_dedup").Warn("an event was forgotten; its next delivery will be processed",
		zap.String("key", key), zap.String("state", record.State.String()), zap.String("remote_addr", r.RemoteAddr),
		zap.String("user_agent", r.UserAgent()), zap.Bool("force", r.URL.Query().Get("force") == "true"))
	return newEventJSON(record, handle.name), nil
}

// statsJSON are the counts of all stores together, and the health of each.
type statsJSON struct {
	// Providers has the number of records by provider and state.
	Providers map[string]map[string]int64 `json:"providers"`
	// OldestProcessing is when the claim that has been held longest was last granted or renewed.
	OldestProcessing   *time.Time       `json:"oldest_processing"`
	PendingCompletions int              `json:"pending_completions"`
	Stores             []storeStatsJSON `json:"stores"`
}

type storeStatsJSON struct {
	Store string `json:"store"`
	// Healthy is whether it answers, LatencyMS how long that took.
	Healthy   bool    `json:"healthy"`
	LatencyMS float64 `json:"latency_ms"`
	Error     string  `json:"error,omitempty"`
}

func (adminAPI) stats(ctx context.Context) (any, error) {
	handles, err := usedStores()
	if err != nil {
		return nil, err
	}
	answer := statsJSON{Providers: map[string]map[string]int64{}, Stores: []storeStatsJSON{}}
	for _, handle := range handles {
		shared := handle.acquire()
		answer.PendingCompletions += shared.background.pendingCompletions()
		health, stats := storeStats(ctx, shared)
		handle.release()
		answer.Stores = append(answer.Stores, health)
		for name, states := range stats.Counts {
			if answer.Providers[name] == nil {
				answer.Providers[name] = map[string]int64{}
			}
			for state, n := range states {
				answer.Providers[name][state.String()] += n
			}
		}
		if at := stats.OldestProcessing; !at.IsZero() && (answer.OldestProcessing == nil || at.Before(*answer.OldestProcessing)) {
			at = at.UTC()
			answer.OldestProcessing = &at
		}
	}
	return answer, nil
}

func storeStats(ctx context.Context, shared *sharedStore) (storeStatsJSON, claim.Stats) {
	health := storeStatsJSON{Store: shared.handle.name}
	store, err := shared.open()
	var stats claim.Stats
	if err == nil {
		started := time.Now()
		err = store.Ping(ctx)
		health.LatencyMS = milliseconds(time.Since(started))
	}
	if err == nil {
		stats, err = store.Stats(ctx)
	}
	if health.Healthy = err == nil; err != nil {
		health.Error = err.Error()
	}
	return health, stats
}

// usedStores returns the stores of the running configuration, always in the same order.
func usedStores() ([]*storeHandle, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("webhook_dedup")
	if err != nil {
		return nil, apiError(http.StatusNotFound, errors.New("the running configuration has no webhook_dedup"))
	}
	a := app.(*App)
	a.mu.Lock()
	defer a.mu.Unlock()
	var handles []*storeHandle
	for _, handle := range a.used {
		handles = append(handles, handle)
	}
	if len(handles) == 0 {
		return nil, apiError(http.StatusNotFound, errors.New("no route of the running configuration uses webhook_dedup"))
	}
	slices.SortFunc(handles, func(a, b *storeHandle) int { return strings.Compare(a.identity, b.identity) })
	return handles, nil
}

// withStore calls f with the open store.
func withStore(handle *storeHandle, f func(claim.Store) error) error {
	shared := handle.acquire()
	defer handle.release()
	store, err := shared.open()
	if err != nil {
		return err
	}
	return f(store)
}

func storeAPIError(handle *storeHandle, err error) error {
	if errors.Is(err, claim.ErrArgument) {
		return apiError(http.StatusBadRequest, err)
	}
	return apiError(http.StatusServiceUnavailable,
		fmt.Errorf("the %s store failed: %w; see that it runs and that Caddy reaches it, then ask again", handle.name, err))
}

// Interface guards
var _ caddy.AdminRouter = (*adminAPI)(nil)
