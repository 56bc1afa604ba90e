package load

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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
	u.serverCPU, u.serverReadable = processCPU(r.cfg.PID)
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
	if cpu, ok := processCPU(r.cfg.PID); ok && u.serverReadable {
		u.server = &ServerUse{CPU: scaled(cpu - u.serverCPU), Resident: resident(r.cfg.PID)}
	}
	u.at = 0
}

// processCPU returns the CPU time of all threads of a process. Linux reports it in
// hundredths of a second.
func processCPU(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
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

// resident returns the resident memory of a process in bytes, 0 if it is not known.
func resident(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rss, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rss), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
