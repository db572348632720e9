//go:build unix && !linux

package testpostgres

import "syscall"

func tie(*syscall.SysProcAttr) {}
