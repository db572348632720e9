//go:build unix

package testredis

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var (
	reservedMu sync.Mutex
	reserved   = map[int]bool{}
)

// freePort returns a port below the range from which the system takes ports for outgoing connections, so that none of
// these can get in the way of a Restart. With bus it has a free companion 10000 above, which is where a cluster node
// listens for the other nodes. No port is given out twice in one process.
func freePort(t testing.TB, bus bool) string {
	t.Helper()
	reservedMu.Lock()
	defer reservedMu.Unlock()
	for range 1000 {
		port := 10_001 + rand.IntN(11_000)
		if reserved[port] || reserved[port+10_000] || !isFree(port) || bus && !isFree(port+10_000) {
			continue
		}
		reserved[port] = true
		reserved[port+10_000] = bus
		return strconv.Itoa(port)
	}
	t.Fatal("no free port was found")
	return ""
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// FreeAddr is an address where nothing listens.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", freePort(t, false))
}
