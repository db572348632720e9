package webhookdedup

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestMisconfiguration checks that every wrong value is an error at load which names the line and what is allowed.
func TestMisconfiguration(t *testing.T) {
	const secret = "secret {env.STRIPE_SECRET}"
	for _, test := range []struct {
		name, global, block string
		want                []string
	}{
		{"no provider", "", "webhook_dedup {\n" + secret + "\n}", []string{"Caddyfile:8", "takes one provider"}},
		{"two providers", "", "webhook_dedup stripe github {\n" + secret + "\n}", []string{"Caddyfile:8", "takes one provider"}},
		{"unknown provider", "", "webhook_dedup strpe {\n" + secret + "\n}", []string{"Caddyfile:8", `"strpe"`, "github", "stripe"}},
		{"no secret", "", "webhook_dedup stripe", []string{"Caddyfile:8", "no secret"}},
		{"no secret in the block", "", "webhook_dedup stripe {\nttl 1d\n}", []string{"Caddyfile:10", "no secret"}},
		{"empty secret", "", "webhook_dedup stripe {\nsecret \"\"\n}", []string{"Caddyfile:9", "empty"}},
		{"secret without arguments", "", "webhook_dedup stripe {\nsecret\n}", []string{"Caddyfile:9", "at least one"}},
		{"secret that expands to nothing", "", "webhook_dedup stripe {\nsecret {env.NOT_SET_ANYWHERE}\n}", []string{"Caddyfile:8", "{env.NOT_SET_ANYWHERE}", "empty"}},
		{"secret of the wrong form", "", "webhook_dedup svix {\nsecret whsec_not!base64\n}", []string{"Caddyfile:8", "secret 1"}},
		{"unknown subdirective", "", "webhook_dedup stripe {\n" + secret + "\nttll 1d\n}", []string{"Caddyfile:10", "ttll", "allowed are secret, signature"}},
		{"repeated subdirective", "", "webhook_dedup stripe {\n" + secret + "\nttl 1d\nttl 2d\n}", []string{"Caddyfile:11", "twice"}},
		{"ttl of 0", "", "webhook_dedup stripe {\n" + secret + "\nttl 0\n}", []string{"Caddyfile:10", "ttl", "positive durations"}},
		{"ttl that is none", "", "webhook_dedup stripe {\n" + secret + "\nttl long\n}", []string{"Caddyfile:10", "ttl", `"long"`}},
		{"negative lease", "", "webhook_dedup stripe {\n" + secret + "\nlease -1s\n}", []string{"Caddyfile:10", "lease"}},
		{"lease too short", "", "webhook_dedup stripe {\n" + secret + "\nlease 2s\n}", []string{"Caddyfile:8", "six times store_timeout"}},
		{"in_flight", "", "webhook_dedup stripe {\n" + secret + "\nin_flight maybe\n}", []string{"Caddyfile:10", "reject"}},
		{"in_flight status", "", "webhook_dedup stripe {\n" + secret + "\nin_flight reject 200\n}", []string{"Caddyfile:10", "400 to 599"}},
		{"duplicate status", "", "webhook_dedup stripe {\n" + secret + "\nduplicate 409\n}", []string{"Caddyfile:10", "200 to 299"}},
		{"acknowledge", "", "webhook_dedup stripe {\n" + secret + "\nacknowledge 5xx\n}", []string{"Caddyfile:10", "200 to 499"}},
		{"on_store_error", "", "webhook_dedup stripe {\n" + secret + "\non_store_error ignore\n}", []string{"Caddyfile:10", "reject, pass"}},
		{"mode", "", "webhook_dedup stripe {\n" + secret + "\nmode shadow\n}", []string{"Caddyfile:10", "enforce, observe"}},
		{"max_body", "", "webhook_dedup stripe {\n" + secret + "\nmax_body big\n}", []string{"Caddyfile:10", "sizes"}},
		{"public_url", "", "webhook_dedup stripe {\n" + secret + "\npublic_url example.com\n}", []string{"Caddyfile:10", "scheme://host"}},
		{"forward_key", "", "webhook_dedup stripe {\n" + secret + "\nforward_key \"a b\"\n}", []string{"Caddyfile:8", "forward_key"}},
		{"id source", "", "webhook_dedup stripe {\n" + secret + "\nid cookie x\n}", []string{"Caddyfile:10", "header <name>"}},
		{"id path", "", "webhook_dedup stripe {\n" + secret + "\nid json a[\n}", []string{"Caddyfile:8", "json"}},
		{"signature algorithm", "", "webhook_dedup stripe {\n" + secret + "\nsignature md5\n}", []string{"Caddyfile:10", "hmac-sha256"}},
		{"signature without header", "", "webhook_dedup stripe {\n" + secret + "\nsignature hmac-sha256\n}", []string{"Caddyfile:10", "header"}},
		{"content brace", "", "webhook_dedup stripe {\n" + secret + "\nsignature hmac-sha256 {\nheader X\ncontent {bodi}\n}\n}", []string{"Caddyfile:8", "{bodi}", "{body}"}},
		{"signature off with a secret", "", "webhook_dedup stripe {\n" + secret + "\nsignature off\n}", []string{"Caddyfile:8", "signature off"}},
		{"unknown store", "", "webhook_dedup stripe {\n" + secret + "\nstore rediss\n}", []string{"Caddyfile:10", `"rediss"`, "memory"}},
		{"store subdirective", "", "webhook_dedup stripe {\n" + secret + "\nstore memory {\nnam x\n}\n}", []string{"Caddyfile:11", "nam"}},
		{"global subdirective", "webhook_dedup {\nenviroment x\n}", "respond ok", []string{"Caddyfile:7", "enviroment", "environment"}},
		{"global environment", "webhook_dedup {\nenvironment {env.NOT_SET_ANYWHERE}\n}", guarded(), []string{"Caddyfile:6", "environment"}},
		{"own provider without id", "webhook_dedup {\nprovider acme {\nttl 1d\n}\n}", "respond ok", []string{"Caddyfile:9", "no id"}},
		{"own provider of the catalogue", "webhook_dedup {\nprovider stripe {\nid header X\n}\n}", "respond ok", []string{"Caddyfile:7", "catalogue"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.global != "" {
				test.global += "\n"
			}
			err := validate("{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n\n" + test.global +
				"}\nhttp://hooks.example.com {\n" + test.block + "\n}")
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), testSecret) {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}

// validate does what `caddy validate` does.
func validate(text string) error {
	config, err := adapt(text)
	if err != nil {
		return err
	}
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON(config, &cfg); err != nil {
		return err
	}
	return caddy.Validate(&cfg)
}

func TestValidJSONWithoutCaddyfile(t *testing.T) {
	for name, test := range map[string]struct{ handler, want string }{
		"minimal":         {`{"handler":"webhook_dedup","provider":"stripe","secrets":["{env.STRIPE_SECRET}"]}`, ""},
		"no provider":     {`{"handler":"webhook_dedup","secrets":["x"]}`, "no provider"},
		"no secret":       {`{"handler":"webhook_dedup","provider":"stripe"}`, "no secret"},
		"negative ttl":    {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"ttl":-1}`, "ttl"},
		"unknown field":   {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"tll":1}`, "tll"},
		"in_flight":       {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"in_flight":{"action":"x"}}`, "wait, reject, accept"},
		"duplicate":       {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"duplicate":{"status":300}}`, "200 to 299"},
		"mode":            {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"mode":"x"}`, "enforce, observe"},
		"unknown store":   {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"store":{"module":"x"}}`, "webhook_dedup.stores.x"},
		"negative size":   {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"max_body":-1}`, "max_body"},
		"acknowledge 500": {`{"handler":"webhook_dedup","provider":"stripe","secrets":["x"],"acknowledge":["500"]}`, "200 to 499"},
	} {
		t.Run(name, func(t *testing.T) {
			config := `{"admin":{"disabled":true},"apps":{"http":{"servers":{"x":{"routes":[{"handle":[` + test.handler + `]}]}}}}}`
			var cfg caddy.Config
			if err := caddy.StrictUnmarshalJSON([]byte(config), &cfg); err != nil {
				t.Fatal(err)
			}
			err := caddy.Validate(&cfg)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// FuzzCaddyfile checks that no input makes the parser panic, hang or accept a directive without a check.
func FuzzCaddyfile(f *testing.F) {
	f.Add("webhook_dedup stripe {\n secret a\n}")
	f.Add("webhook_dedup stripe {\n signature hmac-sha256 {\n header X\n content \"{body}\"\n}\n secret a b\n id json $.a header X\n}")
	f.Add("webhook_dedup x {\n signature off\n in_flight wait 3s\n duplicate replay 1KiB\n store memory {\n name x\n}\n}")
	f.Add("webhook_dedup x {\n id body except a.b c[0]\n tolerance off\n acknowledge 2xx 409\n")
	f.Fuzz(func(t *testing.T, text string) {
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err == nil && !h.SignatureOff && len(h.Secrets) == 0 {
			t.Errorf("accepted without a check of the signature: %q", text)
		}
		app := new(App)
		if err := app.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err == nil {
			for name, own := range app.Providers {
				if len(own.ID) == 0 {
					t.Errorf("provider %s accepted without an id: %q", name, text)
				}
			}
		}
	})
}
