package main

// The store that users add with a second --with.
import _ "github.com/webhook-dedup/caddy-webhook-dedup/stores/postgres"
