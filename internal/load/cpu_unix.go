//go:build unix

package load

import (
	"syscall"
	"time"
)

// ownCPU returns the CPU time of this process, 0 if it is not known.
func ownCPU() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
