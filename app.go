package webhookdedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedup/caddy-webhook-dedup/claim"
	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func init() {
	caddy.RegisterModule(new(App))
}

const (
	defaultStore       = "file"
	defaultMaxBuffered = 512 << 20
	defaultOwnTTL      = 7 * 24 * time.Hour
)

// App has what all `webhook_dedup` handlers share. It need not be configured: without it, events are remembered in a file
// in Caddy's data directory.
type App struct {
	// The first part of every key, so that environments such as `production` and `staging` can share a store.
	// Placeholders such as `{env.NAME}` are allowed. Default: empty
	Environment string `json:"environment,omitempty"`

	// How many bytes of request bodies all deliveries together may hold in memory; a delivery beyond it is answered 503
	// before its body is read. Default: 536870912
	MaxBuffered int64 `json:"max_buffered,omitempty"`

	// The store of every route that names none of its own. Default: `{"module": "file"}`
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=webhook_dedup.stores inline_key=module"`

	// Providers that the catalogue does not have, by the name that handlers use. A name of the catalogue is an error.
	Providers map[string]*OwnProvider `json:"providers,omitempty"`

	// Where the app was configured, for error messages: the Caddyfile adapter sets file and line. Default: none
	DefinedAt string `json:"defined_at,omitempty"`

	environment string
	maxBuffered int64
	store       *storeHandle
	logger      *zap.Logger

	mu   sync.Mutex
	used map[string]*storeHandle // the stores of all handlers, by identity
}

// OwnProvider is a provider that the catalogue does not have.
type OwnProvider struct {
	// How deliveries are signed. Required, unless every handler that uses the provider sets `signature_off`.
	Signature *provider.Scheme `json:"signature,omitempty"`

	// Where the event ID is found, as in the handler's `id`. Required.
	ID []provider.Part `json:"id,omitempty"`

	// Where the kind of event is found, a list of alternatives. It is only shown. Default: none
	EventType provider.Part `json:"event_type,omitempty"`

	// How long a processed event is remembered. Default: 7d, or twice `retry_window` if that is longer
	TTL caddy.Duration `json:"ttl,omitempty"`

	// For how long the provider retries a delivery that was not acknowledged. Default: not known
	RetryWindow caddy.Duration `json:"retry_window,omitempty"`

	// After how long without an answer the provider hangs up. Default: not known
	ResponseTimeout caddy.Duration `json:"response_timeout,omitempty"`

	// The longest body in bytes. Default: 10485760
	MaxBody int64 `json:"max_body,omitempty"`
}

// spec is the catalogue's form of an own provider.
func (o *OwnProvider) spec(name string) provider.Spec {
	s := provider.Spec{
		ID:              name,
		Title:           name,
		Own:             true,
		EventID:         o.ID,
		EventType:       o.EventType,
		Retry:           provider.Retry{Automatic: true, Window: time.Duration(o.RetryWindow), On: []string{"4xx", "5xx", "timeout"}},
		ResponseTimeout: time.Duration(o.ResponseTimeout),
		MaxBody:         o.MaxBody,
		TTL:             time.Duration(o.TTL),
	}
	if o.Signature != nil {
		s.Schemes = []provider.Scheme{*o.Signature}
	}
	if s.TTL == 0 {
		s.TTL = max(defaultOwnTTL, 2*s.Retry.Window)
	}
	return s
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_dedup",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision sets the app up, without touching network or files.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	a.used = map[string]*storeHandle{}
	if err := a.configure(ctx); err != nil {
		return located(a.DefinedAt, err)
	}
	return nil
}

func (a *App) configure(ctx caddy.Context) error {
	environment, err := caddy.NewReplacer().ReplaceOrErr(a.Environment, true, true)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	a.environment = claim.EncodePart(environment)
	if a.maxBuffered = a.MaxBuffered; a.maxBuffered == 0 {
		a.maxBuffered = defaultMaxBuffered
	}
	if a.maxBuffered < 0 {
		return fmt.Errorf("max_buffered is %d; allowed are positive sizes", a.MaxBuffered)
	}
	for name, own := range a.Providers {
		if _, taken := provider.Lookup(name); taken {
			return fmt.Errorf("provider %s: the catalogue has one of this name; choose another, or override its signature and id in the directive", name)
		}
		if own == nil {
			return fmt.Errorf("provider %s: empty", name)
		}
		if err := positive("ttl", own.TTL, "retry_window", own.RetryWindow, "response_timeout", own.ResponseTimeout); err != nil {
			return fmt.Errorf("provider %s: %w", name, err)
		}
		if own.MaxBody < 0 {
			return fmt.Errorf("provider %s: max_body is %d; allowed are positive sizes", name, own.MaxBody)
		}
		if _, err := provider.Compile(own.spec(name)); err != nil {
			return fmt.Errorf("provider %s: %w", name, err)
		}
	}
	if a.StoreRaw == nil {
		loaded, err := ctx.LoadModuleByID(storeNamespace+"."+defaultStore, nil)
		if err != nil {
			return fmt.Errorf("loading the default store: %w", err)
		}
		a.store, err = newStoreHandle(ctx, loaded)
		return err
	}
	a.store, err = loadStore(ctx, a, a.StoreRaw)
	return err
}

// lookup finds a provider by name, in the catalogue or among the user's own.
func (a *App) lookup(name string) (provider.Spec, error) {
	if spec, ok := provider.Lookup(name); ok {
		return spec, nil
	}
	if own, ok := a.Providers[name]; ok {
		return own.spec(name), nil
	}
	return provider.Spec{}, fmt.Errorf("unknown provider %q; allowed are %s", name, a.providerNames())
}

// use notes the store of a handler, to be opened at start.
func (a *App) use(store *storeHandle) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[store.identity] = store
}

// Start opens the stores that handlers use, so that one which can't be opened is an error at load rather than at the
// first delivery.
func (a *App) Start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var failed error
	for _, handle := range a.used {
		_, err := handle.acquire().open()
		handle.release() // the handlers hold it
		failed = errors.Join(failed, err)
	}
	return failed
}

// Stop does nothing: stores are closed when the last delivery that needs them is done.
func (a *App) Stop() error { return nil }

// Interface guards
var (
	_ caddy.App             = (*App)(nil)
	_ caddy.Provisioner     = (*App)(nil)
	_ caddyfile.Unmarshaler = (*App)(nil)
)
