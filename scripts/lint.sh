#!/usr/bin/env bash
# gofmt, go vet and staticcheck on every module of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unformatted=$(find . -name '*.go' -not -path '*/node_modules/*' -exec gofmt -l {} +)
if [[ -n $unformatted ]]; then
	printf 'gofmt would change these files; make fmt does it:\n%s\n' "$unformatted" >&2
	exit 1
fi

# The linter itself needs no race detector, whatever the caller compiles the modules with.
GOFLAGS=$(go env GOFLAGS | sed 's/-race//') go -C tools build -o "$work/staticcheck" honnef.co/go/tools/cmd/staticcheck

# Every folder with a go.mod, but for the one that pins the tools, which holds no code.
status=0
for mod in $(find . -name go.mod -not -path './tools/*' -not -path '*/node_modules/*' | sort); do
	module=$(dirname "$mod")
	echo "$module: go vet"
	(cd "$module" && go vet ./...) || status=1
	echo "$module: staticcheck"
	(cd "$module" && "$work/staticcheck" ./...) || status=1
done
exit "$status"
