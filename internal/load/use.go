package load

import (
	"time"

	"github.com/prometheus/procfs"
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
		u.server = &ServerUse{CPU: scaled(cpu - u.serverCPU), Resident: int64(ProcessStatus(r.cfg.PID).VmRSS)}
	}
	u.at = 0
}

// ProcessCPU returns the CPU time of all threads of a process, and whether it is known. Linux
// reports it in hundredths of a second.
func ProcessCPU(pid int) (time.Duration, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := p.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err == nil
}

// ProcessStatus returns the status of a process, which has its memory in bytes: VmRSS is what
// is resident, VmHWM the most that has been. Both are 0 if that is not known.
func ProcessStatus(pid int) (status procfs.ProcStatus) {
	if p, err := procfs.NewProc(pid); err == nil {
		status, _ = p.NewStatus()
	}
	return status
}
