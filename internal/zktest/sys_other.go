//go:build unix && !linux

package zktest

import "syscall"

// Elsewhere the package compiles, and does without: servers may outlive a
// killed test binary, and ports are claimed by nothing but their listeners.

func dieWithUs() *syscall.SysProcAttr { return nil }

func exited(pid int) bool { return syscall.Kill(pid, 0) != nil }

func suspended(int) bool { return true }

func claim(int) (release func(), err error) { return func() {}, nil }
