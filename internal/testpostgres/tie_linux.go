package testpostgres

import "syscall"

// tie makes a process end with this one, however that ends.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
