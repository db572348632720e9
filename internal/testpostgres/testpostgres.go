//go:build unix

// Package testpostgres starts PostgreSQL and PgBouncer for tests, and freezes, kills and restarts the former.
package testpostgres

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a PostgreSQL of this test's own, on a free port of the loopback interface. It ends with the test.
type Server struct {
	// Addr is its host:port. It stays the same over a Restart.
	Addr string

	t    testing.TB
	dir  string
	args []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{}
	out    *bytes.Buffer
	frozen []int
}

// Start makes a new cluster of databases and runs it with these settings ("fsync=off", "max_connections=5"); without
// any, it is as durable as PostgreSQL is by default. It returns when the server answers. Where the programs are missing
// the test fails: it never skips.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: tempDir(t)}
	// No password is asked of anybody but "secret", so that a test can see what a wrong one does.
	init := command(s.dir, program(t, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	rules := "host all secret 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	var err error
	for range 10 {
		port := freePort(t)
		s.Addr = net.JoinHostPort("127.0.0.1", port)
		s.args = []string{"-D", s.data(), "-p", port, "-c", "listen_addresses=127.0.0.1", "-k", s.dir, "-c", "shared_buffers=32MB"}
		for _, setting := range settings {
			s.args = append(s.args, "-c", setting)
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

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// DSN is how its superuser reaches the database that every server has.
func (s *Server) DSN() string { return s.As("postgres") }

// As is the same for another user: "name" or "name:password".
func (s *Server) As(user string) string {
	return "postgres://" + user + "@" + s.Addr + "/postgres?sslmode=disable"
}

// Exec runs statements as the superuser and returns what psql prints: a line a row, columns parted by |.
func (s *Server) Exec(statements ...string) string {
	s.t.Helper()
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", s.DSN()}
	for _, statement := range statements {
		args = append(args, "-c", statement)
	}
	out, err := exec.Command(program(s.t, "psql"), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("psql: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd, out, done := command(s.dir, program(s.t, "postgres"), s.args...), new(bytes.Buffer), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	s.cmd, s.out, s.done = cmd, out, done
	for deadline := time.Now().Add(30 * time.Second); ; {
		if exec.Command(program(s.t, "psql"), "-X", "-q", "-d", s.DSN(), "-c", "SELECT 1").Run() == nil {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("postgres ended at once: %s", out)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres at %s does not answer", s.Addr)
		}
	}
}

// Pause freezes the server with all of its processes: connections are accepted, by the kernel, and nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // first: it starts the others
		s.t.Fatalf("freezing postgres: %v", err)
	}
	s.frozen = s.children()
	for _, pid := range s.frozen {
		syscall.Kill(pid, syscall.SIGSTOP) // one that has just ended is frozen enough
	}
}

// Resume thaws a frozen server, which then does all that it was sent meanwhile.
func (s *Server) Resume() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range s.frozen {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	s.frozen = nil
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatalf("thawing postgres: %v", err)
	}
}

// Kill ends the server with all of its processes as a crash would. It does nothing to a server that has ended.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGSTOP) // so that it starts none while they are looked up
	children := s.children()
	s.cmd.Process.Kill()
	for _, pid := range children {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.done
	// A new server refuses its data as long as a process of the old one lives.
	for _, pid := range children {
		for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	s.frozen, s.cmd = nil, nil
}

// Restart starts a killed server again with the same port, data and settings.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}

// children are the server's processes but for the first. They are in sessions of their own, so that only the table of
// all processes tells.
func (s *Server) children() (pids []int) {
	for _, p := range processes() {
		if p.parent == s.cmd.Process.Pid {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func zombie(pid int) bool {
	return slices.ContainsFunc(processes(), func(p process) bool { return p.pid == pid && strings.HasPrefix(p.state, "Z") })
}

type process struct {
	pid, parent int
	state       string
}

func processes() (all []process) {
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "state=").Output()
	if err != nil {
		panic("ps is needed for this test; on Debian and Ubuntu: apt-get install procps")
	}
	for line := range strings.Lines(string(out)) {
		var p process
		if _, err := fmt.Sscan(line, &p.pid, &p.parent, &p.state); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// program finds a program of PostgreSQL, which Debian keeps out of the PATH.
func program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil && name != "psql" { // Debian's psql is a wrapper, slow to start
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(paths) > 0 {
		return slices.MaxFunc(paths, func(a, b string) int { return version(a) - version(b) })
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is needed for this test and was not found; on Debian and Ubuntu: apt-get install postgresql", name)
	}
	return path
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// tempDir is a directory that the user of [command] owns, under a name that is short enough for a socket. t.TempDir would
// not wait for the end of the server.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "testpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if c := otherUser(); c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command runs a program in dir as a user that PostgreSQL accepts: it refuses root.
func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: otherUser()}
	tie(cmd.SysProcAttr)
	return cmd
}

var otherUser = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
})

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
