package harness

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is one child process, signalled by its pid alone.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; read after done is closed
}

func startProcess(t testing.TB, output io.Writer, env []string, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), env...)
	// A group of its own: an interrupt typed at the tests is theirs, and they stop what they started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if p.ended() {
		t.Fatalf("%s: process %d has ended already: %v", sig, p.cmd.Process.Pid, p.err)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%s to process %d: %v", sig, p.cmd.Process.Pid, err)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until the process has ended, and reports whether it did so in time.
func (p *process) wait(limit time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// kill ends the process, frozen or not, and waits until it is gone. It is safe to call on one that has ended.
func (p *process) kill() {
	if p.ended() {
		return
	}
	p.cmd.Process.Kill()
	<-p.done
}
