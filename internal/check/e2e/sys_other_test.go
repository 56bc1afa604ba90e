//go:build unix && !linux

package e2e

import "syscall"

// Other systems have no such functions. These let the package compile there.

func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func suspended(int) bool { return true }

func residentKiB(int) int { return 0 }
