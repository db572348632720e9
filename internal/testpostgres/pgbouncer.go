//go:build unix

package testpostgres

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Bouncer starts a PgBouncer in transaction mode before s, with so many connections to it, and returns its DSN. It ends
// with the test. Where the program is missing the test fails: it never skips.
func Bouncer(t testing.TB, s *Server, connections int) (dsn string) {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; exec.Command(path, "--version").Run() != nil {
			t.Fatal("pgbouncer is needed for this test and was not found; on Debian and Ubuntu: apt-get install pgbouncer")
		}
	}
	dir := tempDir(t)
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	own := freePort(t)
	config := fmt.Sprintf(`[databases]
postgres = host=%s port=%s dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 200
server_login_retry = 1
`, host, port, own, connections)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := command(dir, path, "-q", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	dsn = "postgres://postgres@127.0.0.1:" + own + "/postgres?sslmode=disable"
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command(program(t, "psql"), "-X", "-q", "-d", dsn, "-c", "SELECT 1").CombinedOutput()
		if err == nil {
			return dsn
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgbouncer does not answer: %s", out)
		}
	}
}
