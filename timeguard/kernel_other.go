//go:build !linux

package timeguard

import "errors"

// KernelClock returns errors.ErrUnsupported. It works on Linux only.
func KernelClock() (Kernel, error) { return Kernel{}, errors.ErrUnsupported }
