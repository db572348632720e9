//go:build unix

// Package testredis starts redis-server for tests, alone, watched by sentinels or as a cluster, and freezes, kills and
// restarts it.
package testredis

import (
	"bytes"
	"crypto/tls"
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

	tls *tls.Config // of a client that the server takes, where it speaks TLS

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	out  *bytes.Buffer
}

// Start runs redis-server with these arguments of its command line ("--maxmemory", "4mb") and waits until it answers.
// Where the program is missing the test fails: it never skips.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, setup{args: func(string) []string { return args }})
}

// setup is what the kinds of server differ in.
type setup struct {
	// args are those of the command line, for a server with this working directory.
	args     func(dir string) []string
	tls      *tls.Config // of a client that the server takes, where it speaks TLS
	bus      bool        // a cluster node
	sentinel bool
}

func start(t testing.TB, with setup) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is needed for this test and was not found; on Debian and Ubuntu: apt-get install redis-server")
	}
	s := &Server{t: t, tls: with.tls}
	dir, err := os.MkdirTemp("", "testredis") // removed after the server has ended, which t.TempDir would not wait for
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	for range 10 {
		port, listen := freePort(t, with.bus), "--port"
		if with.tls != nil {
			listen = "--tls-port"
		}
		s.Addr = net.JoinHostPort("127.0.0.1", port)
		common := []string{"--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning", listen, port}
		if !with.sentinel {
			common = append(common, "--save", "", "--appendonly", "no")
		}
		s.args = with.args(dir)
		if len(s.args) > 0 && !strings.HasPrefix(s.args[0], "--") { // a configuration file comes first
			s.args = append(append([]string{s.args[0]}, common...), s.args[1:]...)
		} else {
			s.args = append(common, s.args...)
		}
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
func (s *Server) URL() string {
	if s.tls != nil {
		return "rediss://" + s.Addr
	}
	return "redis://" + s.Addr
}

func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd, out, done := exec.Command("redis-server", s.args...), new(bytes.Buffer), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	tie(cmd)
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
	c, err := s.dial()
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

func (s *Server) dial() (net.Conn, error) {
	dialer := &net.Dialer{Timeout: time.Second}
	if s.tls != nil {
		return tls.DialWithDialer(dialer, "tcp", s.Addr, s.tls)
	}
	return dialer.Dial("tcp", s.Addr)
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
