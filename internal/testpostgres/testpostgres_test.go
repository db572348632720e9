//go:build unix

package testpostgres

import (
	"os/exec"
	"testing"
	"time"
)

func TestServer(t *testing.T) {
	s := Start(t, "fsync=off", "max_connections=20")
	if got := s.Exec("SHOW max_connections"); got != "20" {
		t.Errorf("max_connections is %q", got)
	}
	s.Exec("CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)", "CHECKPOINT")
	s.Kill()
	s.Restart()
	if got := s.Exec("SELECT n FROM kept"); got != "7" {
		t.Errorf("after a restart: %q", got)
	}
	s.Pause()
	frozen := exec.Command(program(t, "psql"), "-X", "-d", s.DSN(), "-c", "SELECT 1")
	if err := frozen.Start(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- frozen.Wait() }()
	select {
	case err := <-answered:
		t.Errorf("a frozen server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	s.Resume()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	bouncer := Bouncer(t, s, 2)
	if out, err := exec.Command(program(t, "psql"), "-X", "-A", "-t", "-d", bouncer, "-c", "SELECT n FROM kept").Output(); string(out) != "7\n" {
		t.Errorf("through pgbouncer: %q, %v", out, err)
	}
}
