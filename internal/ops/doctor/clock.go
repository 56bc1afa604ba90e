package doctor

import (
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// checkClock judges this machine's clock without comparing it with another machine's.
func checkClock(d stateDir) []Finding {
	kernel, err := kernelClock()
	return []Finding{
		judgeKernel(kernel, err),
		judgeMemory(d, time.Now().UnixMilli()),
	}
}

// kernelState is the state of the kernel's clock, as the kernel reports it.
type kernelState struct {
	// Synchronised reports whether a daemon disciplines the clock and has told the kernel
	// so. chronyd does that only with rtcsync in its configuration.
	Synchronised bool
	// MaxError is the kernel's bound on the error of the clock, EstError its estimate.
	MaxError, EstError time.Duration
}

// judgeKernel judges whether something keeps the clock synchronised, and the maximum error that
// the kernel states.
func judgeKernel(k kernelState, err error) Finding {
	f := Finding{Check: "clock-kernel", Level: OK}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		f.Level, f.Text = Skip, "skipped: only the kernel of Linux reports this"
	case err != nil:
		f.Level, f.Text = Warn, fmt.Sprintf("the kernel does not report whether the clock is synchronised (%v)", err)
		f.Advice = "Check that the host sets the clock (chronyc tracking)"
	case !k.Synchronised:
		f.Level, f.Text = Warn, "the kernel says that the clock is not synchronised"
		f.Advice = "Install chrony, or let the host set the clock. chronyd tells the kernel only with rtcsync in " +
			"chrony.conf"
	default:
		f.Text = fmt.Sprintf("synchronised. The kernel says: at most %s off, %s by estimate", round(k.MaxError),
			round(k.EstError))
		if k.MaxError > limits.WarnSkew {
			f.Level, f.Advice = Warn, "Check whether its time servers can be reached: chronyc sources"
		}
	}
	return f
}

// judgeMemory fails if the clock is further behind a local reserved bound (ReservedUntil) than a
// starting node waits. now is in Unix milliseconds.
func judgeMemory(d stateDir, now int64) Finding {
	f := Finding{Check: "clock-state", Level: OK, Text: "the clock is not behind what a node here may have issued"}
	if !d.belongs() {
		return f
	}
	behind := time.Duration(d.record.Claim.ReservedUntil-now) * time.Millisecond
	if behind > limits.MaxStartWait {
		f.Level = Fail
		f.Text = fmt.Sprintf("the clock is %s behind what worker %d in %s may have issued",
			behind.Round(time.Millisecond), d.record.Claim.Worker, d.path)
		f.Advice = "Set the clock right. If the clock was ahead before, wait, or stop the node, remove the file " +
			"flaked.state in its state directory and start it as a new node"
	}
	return f
}
