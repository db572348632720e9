package testredis

import (
	"os/exec"
	"syscall"
)

// tie ends the server with the test binary also where that one is killed, or panics, and cleans nothing up.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
