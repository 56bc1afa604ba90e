package doctor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// From <sys/timex.h>: bits of status, and the state of a clock that is not synchronised.
const (
	staUnsync = 0x40
	timeError = 5
)

// kernelClock reads the state of the kernel's clock, and changes nothing.
func kernelClock() (kernelState, error) {
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	if err != nil {
		return kernelState{}, fmt.Errorf("adjtimex: %w", err)
	}
	return kernelState{
		Synchronised: state != timeError && tx.Status&staUnsync == 0,
		MaxError:     time.Duration(tx.Maxerror) * time.Microsecond,
		EstError:     time.Duration(tx.Esterror) * time.Microsecond,
	}, nil
}
