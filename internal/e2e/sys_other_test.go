//go:build unix && !linux

package e2e

import "syscall"

// Elsewhere the package compiles, and does without.

func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func suspended(int) bool { return true }

func residentKiB(int) int { return 0 }
