//go:build !unix

package load

import "time"

// ownCPU returns 0: this system does not tell the CPU time of a process.
func ownCPU() time.Duration { return 0 }
