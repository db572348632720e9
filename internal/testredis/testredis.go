//go:build unix

// Package testredis starts redis-server for tests, and freezes, kills and restarts it.
package testredis

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server of this test's own, on a free port of the loopback interface. It keeps nothing on disk unless
// its arguments say so, and ends with the test.
type Server struct {
	// Addr is its host:port. It stays the same over a Restart.
	Addr string

	t    testing.TB
	args []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	out  *bytes.Buffer
}

// Start runs redis-server with these arguments of its command line ("--maxmemory", "4mb") and waits until it answers.
// Where the program is missing the test fails: it never skips.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is needed for this test and was not found; on Debian and Ubuntu: apt-get install redis-server")
	}
	s := &Server{t: t}
	t.Cleanup(s.Kill)
	dir, err := os.MkdirTemp("", "testredis") // removed after the server has ended, which t.TempDir would not wait for
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	for range 10 {
		port := freePort(t)
		s.Addr = net.JoinHostPort("127.0.0.1", port)
		s.args = append([]string{
			"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
		}, args...)
		if err = s.run(); err == nil {
			return s
		}
		if !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	t.Fatal(err)
	return nil
}

// URL is how a client without credentials reaches it.
func (s *Server) URL() string { return "redis://" + s.Addr }

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd, out, done := exec.Command("redis-server", s.args...), new(bytes.Buffer), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	s.cmd, s.out, s.done = cmd, out, done
	for deadline := time.Now().Add(20 * time.Second); ; {
		if s.answers() {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("redis-server ended at once: %s", out)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server at %s does not answer", s.Addr)
		}
	}
}

// answers reports whether the server says anything to a PING; NOAUTH will do.
func (s *Server) answers() bool {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return false
	}
	var b [8]byte
	n, _ := c.Read(b[:])
	return strings.HasPrefix(string(b[:n]), "+PONG") || strings.HasPrefix(string(b[:n]), "-NOAUTH")
}

// Pause freezes the server: it accepts connections and answers nothing.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume thaws a frozen server, which then does all that it was sent meanwhile.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("sending %s to redis-server: %v", sig, err)
	}
}

// Kill ends the server as a crash would. It does nothing to a server that has ended.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.done
	}
}

// Restart starts a killed server again with the same port and arguments.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}
