#!/usr/bin/env bash
# Delivers what the providers' own SDKs sign to the built binary and prints what became of it.
# WEBHOOK_DEDUP_BINARY names the binary; without it one is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -z ${WEBHOOK_DEDUP_BINARY:-} ]]; then
	WEBHOOK_DEDUP_BINARY=$work/caddy
	go -C .. build -o "$WEBHOOK_DEDUP_BINARY" ./cmd/caddy
fi
export WEBHOOK_DEDUP_BINARY CONFORMANCE_GO=$work/sdks
go -C go build -o "$CONFORMANCE_GO" .

# The SDKs need Node.js 20; the node of an older Debian is good enough to fetch one from the npm registry.
node=node
if (($(node -p 'process.versions.node.split(".")[0]') < 20)); then
	platform=node-$(node -p 'process.platform')-$(node -p 'process.arch')
	npm install --silent --no-save --ignore-scripts --prefix "$work" "$platform@20.20.2"
	node=$work/node_modules/$platform/bin/node
fi

# node_modules is kept from run to run and replaced when the lock file is another.
if ! cmp -s package-lock.json node_modules/.installed-from; then
	npm ci --silent --ignore-scripts
	cp package-lock.json node_modules/.installed-from
fi
"$node" run.mjs "$@"
