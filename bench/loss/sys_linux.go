package main

import "syscall"

// dieWithUs returns attributes by which the kernel kills the child when this process dies.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
