//go:build !linux

package doctor

import "errors"

// kernelClock returns errors.ErrUnsupported. It works on Linux only.
func kernelClock() (kernelState, error) { return kernelState{}, errors.ErrUnsupported }
