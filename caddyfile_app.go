package webhookdedup

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("webhook_dedup", parseApp)
}

func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the global option webhook_dedup is given twice")
	}
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "webhook_dedup", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets the app up from the global option. Syntax:
//
//	webhook_dedup {
//		environment  <name>
//		max_buffered <size>
//		store        <name> { … }
//		provider     <name> {
//			signature        <algorithm> { … }
//			id               <source> [<source>...]
//			event_type       <source> [<source>...]
//			ttl              <duration>
//			retry_window     <duration>
//			response_timeout <duration>
//			max_body         <size>
//		}
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the option's name
	a.DefinedAt = place(d)
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		if seen[name] && name != "provider" {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case "environment":
			err = oneArg(d, &a.Environment)
		case "max_buffered":
			err = parseSize(d, &a.MaxBuffered)
		case "store":
			a.StoreRaw, err = parseStore(d)
		case "provider":
			err = a.unmarshalProvider(d)
		default:
			err = d.Errf("unrecognized subdirective %q; allowed are environment, max_buffered, store, provider", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *App) unmarshalProvider(d *caddyfile.Dispenser) error {
	var name string
	if err := oneArg(d, &name); err != nil {
		return err
	}
	if _, taken := provider.Lookup(name); taken {
		return d.Errf("provider %s: the catalogue has one of this name; choose another, or override its signature and id in the directive", name)
	}
	if a.Providers[name] != nil {
		return d.Errf("provider %s is given twice", name)
	}
	own := new(OwnProvider)
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if seen[d.Val()] && d.Val() != "id" {
			return d.Errf("%s is given twice", d.Val())
		}
		seen[d.Val()] = true
		if err := own.unmarshalLine(d, d.Val()); err != nil {
			return err
		}
	}
	if len(own.ID) == 0 {
		return d.Errf("provider %s: no id; say where its event ID is, as in: id header X-Event-Id", name)
	}
	if _, err := provider.Compile(own.spec(name)); err != nil {
		return d.Errf("%v", err)
	}
	if a.Providers == nil {
		a.Providers = map[string]*OwnProvider{}
	}
	a.Providers[name] = own
	return nil
}

func (o *OwnProvider) unmarshalLine(d *caddyfile.Dispenser, name string) (err error) {
	switch name {
	case "signature":
		var off bool
		if o.Signature, off, err = parseSignature(d); off {
			return d.Errf("signature off belongs into the directive, where the provider is used")
		}
	case "id":
		var part provider.Part
		part, err = parseSources(d)
		o.ID = append(o.ID, part)
	case "event_type":
		o.EventType, err = parseSources(d)
	case "ttl":
		err = parseDuration(d, &o.TTL)
	case "retry_window":
		err = parseDuration(d, &o.RetryWindow)
	case "response_timeout":
		err = parseDuration(d, &o.ResponseTimeout)
	case "max_body":
		err = parseSize(d, &o.MaxBody)
	default:
		err = d.Errf("unrecognized subdirective %q of a provider; allowed are %s", name,
			strings.Join([]string{"signature", "id", "event_type", "ttl", "retry_window", "response_timeout", "max_body"}, ", "))
	}
	return err
}
