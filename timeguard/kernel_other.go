//go:build !linux

package timeguard

import "errors"

// KernelClock is for Linux.
func KernelClock() (Kernel, error) { return Kernel{}, errors.ErrUnsupported }
