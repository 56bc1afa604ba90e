package node

import (
	"time"

	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/localcache"
)

// machine is a disk, clocks, and the process that runs on them, nil if none does.
type machine struct {
	s    *sim
	name string
	// wall, boot and mono are its clocks: they make it the timeguard.Clock of its processes.
	wall, boot, mono counter
	lowest           int64 // how far the clock that IDs are made by can ever have been behind, ns, negative
	disk             *memfile.File
	print            localcache.Fingerprint
	durable          diskLook
	saved            localcache.Record // last durable one
	trouble          trouble
	// stall, if not nil, is called during the next sync.
	stall func()
	proc  *process
	runs  int
	boots int
	// paused is until when the machine stands still (SIGSTOP, a stalled host, suspend, a hypervisor's pause), true time
	// in ns.
	paused int64
}

// counter is a clock that counts true time. For a while it may count only a part of it, or more than it.
type counter struct {
	lost        int64 // what it has not counted before from, ns
	from, until int64 // true time, ns
	// percent is the part of the time from then until then that it does not count. 100: it stands still. Negative: it
	// is fast.
	percent int64
}

func (c counter) at(now int64) int64 {
	return now - c.lost - max(0, min(now, c.until)-c.from)*c.percent/100
}

// lose makes the counter lose so many percent of the time from now until then.
func (c *counter) lose(now, until, percent int64) { *c = counter{now - c.at(now), now, until, percent} }

// wake ends a standstill at now. It reports whether the counter stood still.
func (c *counter) wake(now int64) bool {
	if c.percent != 100 || now >= c.until {
		return false
	}
	c.until = max(now, c.from)
	return true
}

func (m *machine) Wall() int64 { return m.wall.at(m.s.now) }
func (m *machine) Boot() int64 { return m.boot.at(m.s.now) }
func (m *machine) Mono() int64 { return m.mono.at(m.s.now) }

// skew returns how far the wall clock is ahead of true time, ns.
func (m *machine) skew() int64 { return m.Wall() - m.s.now }

// wake ends a standstill early. If clocks stood still, it lets 1 ms pass on all of them. Otherwise the issuing clock,
// which samples by the monotonic clock, would not notice it.
func (m *machine) wake() {
	m.paused = 0
	m.boot.wake(m.s.now)
	m.wall.wake(m.s.now)
	if m.mono.wake(m.s.now) {
		m.s.now += 1e6
	}
}

func (s *sim) standStill(m *machine, d time.Duration) {
	s.note("%s: stands still for %s", m.name, d)
	m.paused = max(m.paused, s.now+int64(d))
}

// sleep suspends a machine for d: its monotonic clock stands still as well.
func (s *sim) sleep(m *machine, d time.Duration) {
	s.note("%s: suspended for %s", m.name, d)
	until := s.now + int64(d)
	m.mono.lose(s.now, until, 100)
	m.paused = until + 1e6 // the issuing clock samples by then
}

// pause pauses a virtual machine for d, as a hypervisor does for a snapshot or a live migration: its boot clock stands
// still as well. Its wall clock is right again afterwards, or late until something sets it.
func (s *sim) pause(m *machine, d time.Duration, late bool) {
	s.note("%s: paused for %s, its wall clock stands still %t", m.name, d, late)
	until := s.now + int64(d)
	m.mono.lose(s.now, until, 100)
	m.boot.lose(s.now, until, 100)
	if late {
		m.wall.lose(s.now, until, 100)
	}
	m.paused = until + 1e6
	m.behind(int64(d))
}

// pace makes the boot clock and the monotonic clock of a machine slow by so many percent for d, or fast.
func (s *sim) pace(m *machine, percent int64, d time.Duration) {
	s.note("%s: its boot clock is %d%% slow for %s", m.name, percent, d)
	m.mono.lose(s.now, s.now+int64(d), percent)
	m.boot.lose(s.now, s.now+int64(d), percent)
	m.behind(max(0, int64(d)*percent/100))
}

// behind notes that the clock that IDs are made by may get behind by so much.
func (m *machine) behind(by int64) {
	m.lowest -= by
	m.s.lowest = min(m.s.lowest, m.lowest)
}

// drawPause returns how long a hypervisor pauses a machine.
func (s *sim) drawPause() time.Duration {
	return pick(s, s.upTo(2*s.confirm), s.upTo(2*s.confirm), s.upTo(time.Minute), s.upTo(2*s.lease))
}

// step moves a machine's wall clock by d. It lets 1 ms pass, so that the issuing clock takes a
// sample and notices the step.
func (s *sim) step(m *machine, d time.Duration) {
	s.note("%s: clock steps by %s", m.name, d)
	s.setSkew(m, m.skew()+int64(d))
	s.now += 1e6
}

// drift moves a machine's wall clock ahead by d, in steps that the issuing clock follows.
func (s *sim) drift(m *machine, d time.Duration) {
	s.note("%s: clock gains %s", m.name, d)
	for d > 0 {
		by := min(d, 900*time.Millisecond)
		d -= by
		s.setSkew(m, m.skew()+int64(by))
		s.now += 1e6
		if m.proc != nil {
			m.proc.n.clock.Now()
		}
	}
}

// setSkew sets how far the wall clock is ahead of true time, ns.
func (s *sim) setSkew(m *machine, skew int64) {
	m.wall = counter{lost: -skew}
	m.lowest = min(m.lowest, skew)
	s.lowest, s.highest = min(s.lowest, m.lowest), max(s.highest, skew)
}
