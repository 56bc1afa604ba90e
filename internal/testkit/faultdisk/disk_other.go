//go:build !linux

package faultdisk

import "testing"

// Disk has no function here: faultdisk works on Linux only.
type Disk struct{}

// New skips the test.
func New(t testing.TB) *Disk {
	t.Helper()
	t.Skip("faultdisk: only Linux has loop devices")
	return nil
}

func (*Disk) Dir() string { return "" }
func (*Disk) Fill()       {}
func (*Disk) Free()       {}
func (*Disk) ReadOnly()   {}
func (*Disk) ReadWrite()  {}
func (*Disk) Freeze()     {}
func (*Disk) Thaw()       {}
