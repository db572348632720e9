#!/usr/bin/env bash
# Installs what `make test` needs and this machine lacks: a C compiler (the race detector links C), redis-server,
# PostgreSQL, PgBouncer, Node.js and Prometheus. Debian and its relatives only; elsewhere it says what to install. Nothing it installs is started as a
# service: the tests start servers of their own on free ports.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

missing=()
have gcc || have clang || missing+=(gcc libc6-dev)
have ps || missing+=(procps)
have redis-server || missing+=(redis-server)
have node || missing+=(nodejs)
have npm || missing+=(npm)
have initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
have pgbouncer || [[ -x /usr/sbin/pgbouncer ]] || missing+=(pgbouncer)
{ have prometheus && have promtool; } || missing+=(prometheus)

if ((${#missing[@]})); then
	if ! have apt-get; then
		cat >&2 <<-END
			make test needs what this machine lacks, and does not know its package manager.
			Please install: a C compiler (gcc or clang), redis-server 6.2 or newer, Node.js 20 or newer with npm,
			PostgreSQL 13 or newer with its server, PgBouncer, Prometheus 2.42 or newer with promtool.
			Missing here (as Debian calls it): ${missing[*]}
		END
		exit 1
	fi
	as_root=()
	if ((EUID != 0)); then
		if ! have sudo; then
			echo "make test needs these Debian packages; please install them as root: ${missing[*]}" >&2
			exit 1
		fi
		as_root=(sudo)
	fi
	echo "installing ${missing[*]}"
	# Debian starts a service as soon as it is installed, unless this file says that it is not allowed.
	policy=/usr/sbin/policy-rc.d
	if [[ ! -e $policy ]]; then
		trap '"${as_root[@]}" rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
		"${as_root[@]}" chmod 755 "$policy"
	fi
	"${as_root[@]}" apt-get update -q
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
	# Nor are they to start with the machine.
	for service in redis-server postgresql pgbouncer prometheus; do
		if [[ " ${missing[*]} " == *" $service "* ]] && have systemctl; then
			"${as_root[@]}" systemctl disable --quiet "$service" || true
		fi
	done
fi
