package harness

import (
	"net"
	"strings"
	"testing"
	"time"
)

// Eventually waits until ok, and fails the test after limit.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not so: %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// accepts reports whether somebody listens at address.
func accepts(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func port(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // addresses come from FreeAddress
	}
	return port
}

// indent puts n tabs before every line that is not empty.
func indent(text string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat("\t", n) + line + "\n")
		}
	}
	return b.String()
}

// around returns what follows the first occurrence of text, at most size bytes.
func around(all, text string, size int) string {
	_, after, found := strings.Cut(all, text)
	if !found {
		return ""
	}
	return text + after[:min(len(after), size)]
}
