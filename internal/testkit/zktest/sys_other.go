//go:build unix && !linux

package zktest

import "syscall"

// On systems other than Linux the package works with less protection. Servers may
// outlive a killed test binary, and only a listener reserves a port.

func DieWithUs() *syscall.SysProcAttr { return nil }

func exited(pid int) bool { return syscall.Kill(pid, 0) != nil }

func Suspended(int) bool { return true }

func claim(int) (release func(), err error) { return func() {}, nil }
