#!/usr/bin/env bash
# Everything that must hold before a change is merged. Each step runs even if one before it failed; the summary at the
# end names those that did, and the exit status is theirs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# With the race detector on everywhere, Caddy is compiled once for vet, the linter, the tests and the binary; without,
# it would be compiled twice. It also means that the processes which chaos spawns look for races.
GOFLAGS="$(go env GOFLAGS) -race"
export GOFLAGS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WEBHOOK_DEDUP_BINARY=$work/caddy

summary=()
failed=0
step() {
	local name=$1 start=$SECONDS verdict=ok
	shift
	printf '\n== %s\n' "$name"
	"$@" || { verdict=FAILED && failed=1; }
	summary+=("$(printf '%-8s %4d s  %s' "$verdict" $((SECONDS - start)) "$name")")
}

step 'build' go build -o "$WEBHOOK_DEDUP_BINARY" ./cmd/caddy
step 'format, vet, staticcheck' scripts/lint.sh
step 'unit and integration tests' go test ./...
step 'proof: histories of every store against a reference' go -C proof test -count=1 -timeout=10m ./...
# What needs the binary is not run without one, and the build has failed the whole by then.
needs_binary() {
	if [[ -x $WEBHOOK_DEDUP_BINARY ]]; then
		step "$@"
	else
		summary+=("not run           $1")
	fi
}
needs_binary "conformance: the providers' own SDKs" conformance/run.sh
needs_binary 'chaos: spawned processes and faults' go -C chaos test -count=1 -timeout=15m ./...

printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
exit "$failed"
