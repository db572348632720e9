package webhookdedup

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestAdaptedOrder(t *testing.T) {
	config, err := adapt(`{
		auto_https off
	}
	http://hooks.example.com {
		webhook_dedup stripe {
			secret {env.STRIPE_SECRET}
		}
		handle /hooks/* {
			reverse_proxy localhost:1
		}
		encode gzip
		respond hello
	}`)
	if err != nil {
		t.Fatal(err)
	}
	text := string(config)
	order := []string{`"handler":"encode"`, `"handler":"webhook_dedup"`, `"handler":"reverse_proxy"`, `"handler":"static_response"`}
	last := -1
	for _, part := range order {
		at := strings.Index(text, part)
		if at < last || at < 0 {
			t.Errorf("%s stands in the wrong place: %s", part, text)
		}
		last = at
	}
}

func TestJSONConfigHasTheSameFields(t *testing.T) {
	config, err := adapt(`{
		auto_https off
		webhook_dedup {
			environment staging
			max_buffered 1MiB
			store memory
			provider acme {
				signature hmac-sha256 {
					header X-Acme-Signature
					prefix sha256=
					encoding hex
					content "{timestamp}.{body}"
					timestamp header X-Acme-Timestamp
				}
				id header X-Acme-Delivery
				ttl 3d
			}
		}
	}
	http://hooks.example.com {
		webhook_dedup acme {
			secret a b
			secret c
			tolerance off
			public_url https://hooks.example.com/x
			id header X-A json $.a
			id body except b c
			scope s
			ttl 7d
			lease 1m
			timeout 1m30s
			in_flight wait 3s
			on_missing_id reject
			on_store_error pass
			store_timeout 250ms
			acknowledge 2xx 409
			duplicate replay 2KiB
			forward_key Idempotency-Key
			max_body 1MB
			max_response 2MB
			mode observe
			store memory {
				name other
			}
		}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	apps := decode(t, config)["apps"].(map[string]any)
	compact := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const wantApp = `{"defined_at":"Caddyfile:3","environment":"staging","max_buffered":1048576,` +
		`"providers":{"acme":{"id":[[{"from":"header","name":"X-Acme-Delivery"}]],` +
		`"signature":{"algorithm":"hmac-sha256","content":"{timestamp}.{body}","encoding":"hex","header":"X-Acme-Signature",` +
		`"prefix":"sha256=","timestamp":{"from":"header","name":"X-Acme-Timestamp"}},"ttl":259200000000000}},` +
		`"store":{"module":"memory"}}`
	if got := compact(apps["webhook_dedup"]); got != wantApp {
		t.Errorf("app:\n%s\nwant\n%s", got, wantApp)
	}
	const wantHandler = `{"acknowledge":["2xx","409"],"defined_at":"Caddyfile:21",` +
		`"duplicate":{"max_size":2048,"replay":true},"forward_key":"Idempotency-Key","handler":"webhook_dedup",` +
		`"id":[[{"from":"header","name":"X-A"},{"from":"json","name":"$.a"}],[{"except":["b","c"],"from":"body"}]],` +
		`"in_flight":{"action":"wait","wait":3000000000},"lease":60000000000,"max_body":1000000,"max_response":2000000,` +
		`"mode":"observe","on_missing_id":"reject","on_store_error":"pass","provider":"acme",` +
		`"public_url":"https://hooks.example.com/x","scope":"s","secrets":["a","b","c"],` +
		`"store":{"module":"memory","name":"other"},"store_timeout":250000000,"timeout":90000000000,"tolerance":-1,"ttl":604800000000000}`
	handlers := findHandlers(apps)
	if len(handlers) != 1 {
		t.Fatalf("%d handlers", len(handlers))
	}
	if got := compact(handlers[0]); got != wantHandler {
		t.Errorf("handler:\n%s\nwant\n%s", got, wantHandler)
	}
}

// findHandlers returns all webhook_dedup handlers below v.
func findHandlers(v any) (found []any) {
	switch v := v.(type) {
	case map[string]any:
		if v["handler"] == "webhook_dedup" {
			return []any{v}
		}
		var names []string
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			found = append(found, findHandlers(v[name])...)
		}
	case []any:
		for _, element := range v {
			found = append(found, findHandlers(element)...)
		}
	}
	return found
}
