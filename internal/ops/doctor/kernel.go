package doctor

import "time"

// kernelState is the state of the kernel's clock, as the kernel reports it.
type kernelState struct {
	// Synchronised reports whether a daemon disciplines the clock and has told the kernel
	// so. chronyd does that only with rtcsync in its configuration.
	Synchronised bool
	// MaxError is the kernel's bound on the error of the clock, EstError its estimate.
	MaxError, EstError time.Duration
}
