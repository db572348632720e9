// Package harness starts the real things and keeps the books: Caddy as a process, redis-server as a process, an
// application that records what it was asked to do, a provider that signs and delivers, and a network between them that
// can be cut. It knows webhook_dedup by its outside only: a Caddyfile, HTTP and signals.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// BinaryVariable names the environment variable that holds the path of a built Caddy with webhook_dedup. Where it is
// unset, [Build] builds one.
const BinaryVariable = "WEBHOOK_DEDUP_BINARY"

// binary is the path of the Caddy that all tests of this process spawn; set by Build.
var binary string

// Build makes sure that there is a binary to spawn, built with the race detector, and returns what removes it again. It
// is called once, by TestMain.
func Build() (remove func(), err error) {
	if binary = os.Getenv(BinaryVariable); binary != "" {
		if _, err := os.Stat(binary); err != nil {
			return nil, fmt.Errorf("%s: %w", BinaryVariable, err)
		}
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "webhook-dedup-chaos-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	binary = filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-race", "-o", binary, "./cmd/caddy")
	build.Dir = repository()
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("building caddy: %w\n%s", err, out)
	}
	return remove, nil
}

// repository is the root of the repository, found from where this file was compiled.
func repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
