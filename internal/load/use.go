package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// use is what the generator and the server used in the measured time. Only the watcher
// may use it until it has ended.
type use struct {
	at             int64 // begin's time, 0: not yet
	client         time.Duration
	serverCPU      time.Duration
	serverReadable bool
	server         *ServerUse
}

func (u *use) begin(r *run) {
	u.at, u.client = max(r.now(), 1), ownCPU()
	u.serverCPU, u.serverReadable = ProcessCPU(r.cfg.PID)
}

// end computes what was used since begin, scaled to exactly the measured time: timers
// are late on a busy core.
func (u *use) end(r *run) {
	if u.at == 0 {
		return
	}
	scale := float64(r.until.Load()-r.from) / float64(max(r.now()-u.at, 1))
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * scale) }
	u.client = scaled(ownCPU() - u.client)
	if cpu, ok := ProcessCPU(r.cfg.PID); ok && u.serverReadable {
		u.server = &ServerUse{CPU: scaled(cpu - u.serverCPU), Resident: ProcessMemory(r.cfg.PID, ResidentMemory)}
	}
	u.at = 0
}

// ownCPU returns the CPU time of this process, 0 if it is not known.
func ownCPU() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// ProcessCPU returns the CPU time of all threads of a process, and whether it is known. Linux
// reports it in hundredths of a second.
func ProcessCPU(pid int) (time.Duration, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may contain blanks and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100), err1 == nil && err2 == nil
}

// These are the fields of /proc/PID/status that ProcessMemory reads.
const (
	ResidentMemory = "VmRSS:"
	PeakMemory     = "VmHWM:" // the most resident memory so far
)

// ProcessMemory returns a field of a process's memory in bytes, 0 if it is not known.
func ProcessMemory(pid int, field string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
