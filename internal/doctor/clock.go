package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
)

// checkClock judges this machine's clock without comparing it with another machine's.
func checkClock(d stateDir) []Finding {
	kernel, err := timeguard.KernelClock()
	return []Finding{
		judgeKernel(kernel, err, timekeepers("/proc")),
		judgeMemory(d, time.Now().UnixMilli()),
	}
}

// programs are the process names of programs that discipline a clock. The kernel cuts process
// names at 15 characters.
var programs = []string{"chronyd", "ntpd", "ntpsec", "systemd-timesyn", "openntpd", "ptp4l", "phc2sys", "timemaster"}

// timekeepers returns the members of programs that run and are visible below proc, sorted.
func timekeepers(proc string) []string {
	var found []string
	files, _ := filepath.Glob(proc + "/[0-9]*/comm")
	for _, file := range files {
		text, err := os.ReadFile(file)
		name := strings.TrimSpace(string(text))
		if err == nil && slices.Contains(programs, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// judgeKernel judges whether something keeps the clock synchronised, and the maximum error that
// the kernel states. by names the running programs that keep the time.
func judgeKernel(k timeguard.Kernel, err error, by []string) Finding {
	f := Finding{Check: "clock-kernel", Level: OK}
	keeper := "by a program that is not visible from here"
	if len(by) > 0 {
		keeper = "by " + strings.Join(by, " and ")
	}
	const install = "Install chrony, or let the host set the clock"
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		f.Level, f.Text = Skip, "skipped: only the kernel of Linux reports this"
		return f
	case err != nil && len(by) == 0:
		f.Level, f.Text, f.Advice = Warn, fmt.Sprintf("the kernel does not report (%v), and no program that synchronises the clock is visible", err), install
		return f
	case err != nil:
		f.Text = fmt.Sprintf("the clock is synchronised %s, but the kernel does not report how well (%v)", keeper, err)
		return f
	case !k.Synchronised && len(by) == 0:
		f.Level, f.Text, f.Advice = Warn, "the clock is not synchronised: the kernel says so, and no program that synchronises it is visible", install
		return f
	case !k.Synchronised:
		f.Level, f.Text = Warn, fmt.Sprintf("the kernel says that the clock is not synchronised (running: %s)", strings.Join(by, ", "))
		f.Advice = "See `chronyc tracking` or `timedatectl timesync-status`. chronyd tells the kernel only with rtcsync in chrony.conf"
		return f
	}
	f.Text = fmt.Sprintf("synchronised %s. The kernel says: at most %s off, %s by estimate", keeper, round(k.MaxError), round(k.EstError))
	if k.MaxError > limits.WarnSkew {
		f.Level, f.Advice = Warn, "Check whether its time servers can be reached: chronyc sources"
	}
	if k.LeapPending {
		f.Text += ". A leap second is due at midnight UTC"
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
		f.Text = fmt.Sprintf("the clock is %s behind what worker %d in %s may have issued", behind.Round(time.Millisecond), d.record.Claim.Worker, d.path)
		f.Advice = "Set the clock right. If the clock was ahead before, wait, or stop the node, remove its state directory with rm -r and start it as a new node"
	}
	return f
}
