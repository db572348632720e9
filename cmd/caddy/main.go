// Command caddy is Caddy with webhook_dedup and all of its stores built in.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/webhook-dedup/caddy-webhook-dedup"
	_ "github.com/webhook-dedup/caddy-webhook-dedup/stores/postgres"
)

func main() {
	caddycmd.Main()
}
