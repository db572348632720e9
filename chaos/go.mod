module github.com/webhook-dedup/caddy-webhook-dedup/chaos

go 1.26.0
