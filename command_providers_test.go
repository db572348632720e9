package webhookdedup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/webhook-dedup/caddy-webhook-dedup/provider"
)

func TestProvidersList(t *testing.T) {
	got := runCommand(t, t.Context(), "", "providers")
	got.want(t, 0, "", "")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	all := provider.All()
	if len(lines) != len(all) {
		t.Fatalf("%d lines for %d providers:\n%s", len(lines), len(all), got.out)
	}
	for i, spec := range all {
		if strings.Fields(lines[i])[0] != spec.ID || !strings.Contains(lines[i], spec.Title) {
			t.Errorf("line %d is not about %s: %s", i+1, spec.ID, lines[i])
		}
	}
	got.want(t, 0, "X-GitHub-Delivery +1", "")
}

func TestProvidersDetails(t *testing.T) {
	for _, spec := range provider.All() {
		t.Run(spec.ID, func(t *testing.T) {
			got := runCommand(t, t.Context(), "", "providers", spec.ID)
			got.want(t, 0, spec.Docs, "")
			flat := strings.Join(strings.Fields(strings.ReplaceAll(got.out, "\n- ", " ")), " ")
			for _, fact := range append(append(append([]string{}, spec.Traps...), spec.Evidence...), spec.Unverified...) {
				if !strings.Contains(flat, strings.Join(strings.Fields(fact), " ")) {
					t.Errorf("missing: %s", fact)
				}
			}
			for _, scheme := range spec.Schemes {
				got.want(t, 0, scheme.Header+": ", "")
			}
		})
	}
}

// TestProvidersCaddyfileWorks: what is shown as a Caddyfile is one.
func TestProvidersCaddyfileWorks(t *testing.T) {
	for _, spec := range provider.All() {
		t.Run(spec.ID, func(t *testing.T) {
			name := strings.ToUpper(strings.ReplaceAll(spec.ID, "-", "_")) + "_SECRET"
			t.Setenv(name, base64Secret)
			if pair, own := ownSecret(t, spec.ID); own {
				t.Setenv(name, pair.Verify)
			}
			shown := exampleCaddyfile(spec)
			if len(spec.Schemes) > 0 && !strings.Contains(shown, name) {
				t.Fatalf("%s is not in:\n%s", name, shown)
			}
			config, err := adapt("{\nadmin off\nauto_https off\nlog {\nlevel ERROR\n}\n}\n" + shown)
			if err != nil {
				t.Fatal(err)
			}
			var loaded caddy.Config
			if err := json.Unmarshal(config, &loaded); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&loaded); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestProvidersJSON(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		var all []providerFacts
		if err := json.Unmarshal([]byte(runCommand(t, t.Context(), "", "providers", "--json").out), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) != len(provider.All()) {
			t.Fatalf("%d providers", len(all))
		}
	})
	t.Run("one", func(t *testing.T) {
		var stripe providerFacts
		if err := json.Unmarshal([]byte(runCommand(t, t.Context(), "", "providers", "stripe", "--json").out), &stripe); err != nil {
			t.Fatal(err)
		}
		if stripe.ID != "stripe" || stripe.TTLSeconds != 7*24*3600 || stripe.ToleranceSeconds != 300 || len(stripe.Signatures) != 1 {
			t.Fatalf("got %+v", stripe)
		}
	})
}

func TestProvidersOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	text := "{\n" + ownProviders + "\n}\n"
	config, err := adapt(text)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"Caddyfile": text, "site.caddyfile": text, "other.conf": text, "caddy.json": string(config)}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"a Caddyfile", []string{"--config", "Caddyfile"}},
		{"a Caddyfile by its extension", []string{"--config", "site.caddyfile"}},
		{"a Caddyfile by the flag", []string{"--config", "other.conf", "--adapter", "caddyfile"}},
		{"JSON", []string{"--config", "caddy.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.args[1] = filepath.Join(dir, c.args[1])
			runCommand(t, t.Context(), "", append([]string{"providers"}, c.args...)...).want(t, 0, "X-Acme-Id", "")
			got := runCommand(t, t.Context(), "", append([]string{"providers", "acme"}, c.args...)...)
			for _, want := range []string{"{timestamp}.{url}.{header:X-Acme-Kind}", "header X-Acme-Id", "webhook_dedup acme {", "{env.ACME_SECRET}"} {
				got.want(t, 0, want, "")
			}
			runCommand(t, t.Context(), "", append([]string{"providers", "opaque"}, c.args...)...).want(t, 0, "X-Opaque-Token: <secret>", "")
			runCommand(t, t.Context(), "", append([]string{"providers", "nobody"}, c.args...)...).want(t, exitUsage, "", "acme, adyen, ")
		})
	}
}
