# make test is everything that must hold; README names the two commands that a newcomer needs.

GO ?= go

.PHONY: help build demo test setup lint conformance chaos fmt clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## Caddy with webhook_dedup and all of its stores, in bin/caddy
	$(GO) build -o bin/caddy ./cmd/caddy

demo: ## a signed webhook delivered many times, at once and in turn
	$(GO) run ./cmd/caddy webhook-dedup demo

test: setup ## everything that must hold: format, vet, staticcheck, all tests
	@scripts/test.sh

setup: ## install what the tests need and the machine lacks
	@scripts/setup-tests.sh

lint: ## gofmt, go vet and staticcheck, all modules
	@scripts/lint.sh

conformance: setup ## deliveries signed by the providers' own SDKs
	@conformance/run.sh

chaos: setup ## the two promises, against spawned processes and their faults
	cd chaos && $(GO) test -race -count=1 ./...

fmt: ## gofmt all modules
	find . -name '*.go' -not -path '*/node_modules/*' -exec gofmt -w {} +

clean: ## remove what was built
	rm -rf bin conformance/node_modules
