package webhookdedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/spf13/pflag"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

// catalogueOptions are the flags of commands that know providers: the catalogue's, and those of a configuration.
type catalogueOptions struct {
	config, adapter string
	app             *App // as far as it is needed: its providers
}

func (o *catalogueOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.config, "config", "c", "", "a Caddy configuration with providers of your own")
	flags.StringVarP(&o.adapter, "adapter", "a", "", "the configuration's format, where its name does not tell it")
}

// load reads the providers of the configuration, without provisioning or starting anything of it.
func (o *catalogueOptions) load() error {
	o.app = new(App)
	if o.config == "" {
		if o.adapter != "" {
			return errors.New("--adapter has no use without --config")
		}
		return nil
	}
	config, err := o.adapted()
	if err != nil {
		return fmt.Errorf("reading the configuration %s: %w", o.config, err)
	}
	var all struct {
		Apps struct {
			App struct {
				Providers map[string]*OwnProvider `json:"providers"`
			} `json:"webhook_dedup"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(config, &all); err != nil {
		return fmt.Errorf("reading the configuration %s: %w", o.config, err)
	}
	o.app.Providers = all.Apps.App.Providers
	for name, own := range o.app.Providers {
		if own == nil {
			return fmt.Errorf("reading the configuration %s: provider %s is empty", o.config, name)
		}
		if _, err := provider.Compile(own.spec(name)); err != nil {
			return fmt.Errorf("reading the configuration %s: %w", o.config, err)
		}
	}
	return nil
}

// adapted is the configuration as JSON. Which files are Caddyfiles is told by their names, as in `caddy run`.
func (o *catalogueOptions) adapted() ([]byte, error) {
	content, err := os.ReadFile(o.config)
	if err != nil {
		return nil, err
	}
	name := o.adapter
	if base := strings.ToLower(filepath.Base(o.config)); name == "" {
		switch {
		case strings.HasSuffix(base, ".json"):
		case strings.HasPrefix(base, "caddyfile"), strings.HasSuffix(base, ".caddyfile"):
			name = "caddyfile"
		case !json.Valid(content):
			return nil, errors.New("its name does not tell its format; say it with --adapter, as in --adapter caddyfile")
		}
	}
	if name == "" || name == "json" {
		return content, nil
	}
	adapter := caddyconfig.GetAdapter(name)
	if adapter == nil {
		return nil, fmt.Errorf("no adapter %q in this Caddy", name)
	}
	config, _, err := adapter.Adapt(content, map[string]any{"filename": o.config})
	return config, err
}

// lookup finds a provider by its name.
func (o *catalogueOptions) lookup(name string) (provider.Spec, error) {
	if err := o.load(); err != nil {
		return provider.Spec{}, err
	}
	spec, err := o.app.lookup(name)
	if err != nil && o.config == "" {
		err = fmt.Errorf("%w; for one of your own, name the configuration that has it with --config", err)
	}
	return spec, err
}

// all returns every provider, by name.
func (o *catalogueOptions) all() ([]provider.Spec, error) {
	if err := o.load(); err != nil {
		return nil, err
	}
	specs := provider.All()
	for name, own := range o.app.Providers {
		specs = append(specs, own.spec(name))
	}
	slices.SortFunc(specs, func(a, b provider.Spec) int { return strings.Compare(a.ID, b.ID) })
	return specs, nil
}
