package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis is a redis-server of the test's own.
type Redis struct {
	Address string
	Log     Log

	dir     string
	process *process
}

// NewRedis starts a redis-server on a free port, without persistence: restarted, it is empty.
func NewRedis(t testing.TB) *Redis {
	t.Helper()
	r := &Redis{Address: FreeAddress(t), dir: t.TempDir()}
	t.Cleanup(func() {
		if r.process != nil {
			r.process.kill()
		}
	})
	r.Start(t)
	return r
}

// URL is the redis:// URL of the server.
func (r *Redis) URL() string { return "redis://" + r.Address + "/0" }

// Start starts the server, for the first time or after Kill.
func (r *Redis) Start(t testing.TB) {
	t.Helper()
	r.process = startProcess(t, &r.Log, nil, "redis-server",
		"--bind", "127.0.0.1", "--port", port(r.Address), "--dir", r.dir, "--save", "", "--appendonly", "no")
	Eventually(t, 20*time.Second, "redis-server answers", func() bool {
		if r.process.ended() {
			t.Fatalf("redis-server ended: %v\n%s", r.process.err, r.Log.Tail(20))
		}
		answer, err := r.Do("PING")
		return err == nil && answer == "PONG"
	})
}

// Kill is kill -9; what the server knew is gone.
func (r *Redis) Kill() { r.process.kill() }

// Freeze stops the server until Thaw: it accepts connections and commands, and answers nothing.
func (r *Redis) Freeze(t testing.TB) { t.Helper(); r.process.signal(t, syscall.SIGSTOP) }

// Thaw is the end of Freeze.
func (r *Redis) Thaw(t testing.TB) { t.Helper(); r.process.signal(t, syscall.SIGCONT) }

// Keys is the number of keys in the server.
func (r *Redis) Keys(t testing.TB) int {
	t.Helper()
	answer, err := r.Do("DBSIZE")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(answer)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Clients is the number of connections at the server, without the one that asks.
func (r *Redis) Clients(t testing.TB) int {
	t.Helper()
	answer, err := r.Do("CLIENT", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(answer) {
		if strings.HasPrefix(line, "id=") && !strings.Contains(line, "cmd=client") {
			n++
		}
	}
	return n
}

// Do sends one command on a connection of its own and returns a simple answer as text.
func (r *Redis) Do(args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", r.Address, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	return readRESP(bufio.NewReader(conn))
}

// readRESP reads a simple string, an error, an integer or a bulk string.
func readRESP(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("redis: empty answer")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ':':
		return rest, nil
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", fmt.Errorf("redis: bulk string of length %q", rest)
		}
		bulk := make([]byte, n)
		_, err = io.ReadFull(r, bulk)
		return string(bulk), err
	default:
		return "", fmt.Errorf("redis: %s", line)
	}
}
