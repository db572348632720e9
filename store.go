package webhookdedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"

	// The stores that every build has.
	_ "github.com/webhook-dedup/caddy-webhook-dedup/stores/file"
	_ "github.com/webhook-dedup/caddy-webhook-dedup/stores/memory"
	_ "github.com/webhook-dedup/caddy-webhook-dedup/stores/redis"
)

// storeNamespace is where store modules register; their names are what the Caddyfile's store lines say.
const storeNamespace = "webhook_dedup.stores"

// storeModule is what a guest module in [storeNamespace] provides.
type storeModule interface {
	// Identity names the store that the configuration means, without secrets: routes and reloads with the same
	// identity share one open store.
	Identity() string
	// OpenStore opens it. It may take file locks; it does not wait for a network.
	OpenStore(*zap.Logger) (claim.Store, error)
}

// stores has every open store of this process. Each configuration that names a store, each delivery that uses it and
// the work still pending for it hold a reference, so that a store outlives the reload that dropped it for just as long
// as it is needed.
var stores = caddy.NewUsagePool()

// storeHandle is the store of one route.
type storeHandle struct {
	module   storeModule
	identity string
	name     string // the module's name, a label in metrics and logs
	logger   *zap.Logger
}

// loadStore loads the guest module that a config field named "StoreRaw" of parent holds.
func loadStore(ctx caddy.Context, parent any, raw json.RawMessage) (*storeHandle, error) {
	if raw == nil {
		return nil, nil
	}
	loaded, err := ctx.LoadModule(parent, "StoreRaw")
	if err != nil {
		return nil, fmt.Errorf("loading store: %w", err)
	}
	return newStoreHandle(ctx, loaded)
}

func newStoreHandle(ctx caddy.Context, loaded any) (*storeHandle, error) {
	module, ok := loaded.(storeModule)
	if !ok {
		return nil, fmt.Errorf("module %T is no webhook_dedup store", loaded)
	}
	name := caddy.GetModuleName(loaded)
	logger := zap.New(&currentLog{name: storeNamespace + "." + name})
	return &storeHandle{module: module, identity: module.Identity(), name: name, logger: logger}, nil
}

// acquire takes a reference to the shared store, which is opened on first use.
func (h *storeHandle) acquire() *sharedStore {
	value, _, _ := stores.LoadOrNew(h.identity, func() (caddy.Destructor, error) { return newSharedStore(h), nil })
	return value.(*sharedStore)
}

// release gives a reference back.
func (h *storeHandle) release() {
	if _, err := stores.Delete(h.identity); err != nil {
		h.logger.Error("closing store", zap.String("store", h.name), zap.Error(err))
	}
}

// sharedStore is one open store with what this process knows beside it: waiting deliveries and pending work.
type sharedStore struct {
	handle     *storeHandle
	waiting    waitRoom
	background background

	mu       sync.Mutex
	store    claim.Store
	closed   bool
	failed   error
	failedAt time.Time
}

func newSharedStore(h *storeHandle) *sharedStore {
	s := &sharedStore{handle: h}
	s.waiting.init(s)
	s.background.init(s)
	return s
}

var errStoreClosed = errors.New("the store is closed")

// open returns the store, opening it first where that has not been done. A failure is remembered for a second, so that
// deliveries do not queue up behind a lock that another process holds.
func (s *sharedStore) open() (claim.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errStoreClosed
	}
	if s.store != nil {
		return s.store, nil
	}
	if s.failed != nil && time.Since(s.failedAt) < time.Second {
		return nil, s.failed
	}
	opened, err := s.handle.module.OpenStore(s.handle.logger)
	if err != nil {
		s.failed, s.failedAt = fmt.Errorf("opening %s store: %w", s.handle.name, err), time.Now()
		return nil, s.failed
	}
	s.store, s.failed = measure(opened, s.handle.name), nil
	return s.store, nil
}

// Destruct closes the store. It is called when nothing refers to it any more.
func (s *sharedStore) Destruct() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}

// isAnswer reports whether err is an answer of the protocol, as opposed to a store that failed.
func isAnswer(err error) bool {
	return errors.Is(err, claim.ErrLeaseLost) || errors.Is(err, claim.ErrProcessedBySelf) || errors.Is(err, claim.ErrNotFound)
}

var _ caddy.Destructor = (*sharedStore)(nil)
