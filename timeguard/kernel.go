package timeguard

import "time"

// Kernel is what the kernel knows of its own clock.
type Kernel struct {
	// Synchronised: something disciplines it and says so. chronyd says so only
	// with rtcsync in its configuration.
	Synchronised bool
	// MaxError and EstError are how far off it is at most, and by estimate.
	MaxError, EstError time.Duration
	// LeapPending: a leap second is to be inserted or deleted at midnight UTC.
	LeapPending bool
}
