package harness

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var ports struct {
	sync.Mutex
	given map[int]bool
}

// FreeAddress returns a loopback address that nobody listens on and that this process has not given away before. It is
// outside the range from which systems take the ports of outgoing connections, so that none of those can sit on it
// while a server is being restarted.
func FreeAddress(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if ports.given[port] {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		ports.given[port] = true
		return address
	}
	t.Fatal("no free port found")
	return ""
}
