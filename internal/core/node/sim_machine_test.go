package node

import (
	"time"

	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/localcache"
)

// machine is a machine of the simulation, and the process that runs on it, nil if none does.
type machine struct {
	*memcluster.Machine
	s       *sim
	name    string
	lowest  int64 // how far the clock that IDs are made by can ever have been behind, ns, negative
	durable diskLook
	saved   localcache.Record // last durable one
	trouble trouble
	// stall, if not nil, is called during the next sync.
	stall func()
	proc  *process
	runs  int
	// paused is until when the machine stands still (SIGSTOP, a stalled host, suspend, a hypervisor's pause), true time
	// in ns.
	paused int64
}

// newMachine returns a machine with a blank disk, whose wall clock is ahead of true time by skew.
func (s *sim) newMachine(name string, skew time.Duration) *machine {
	m := &machine{Machine: s.Machine(), s: s, name: name}
	s.setSkew(m, skew)
	s.newDisk(m)
	return m
}

// skew returns how far the wall clock is ahead of true time, ns.
func (m *machine) skew() int64 { return int64(m.Skew()) }

// wake ends a standstill early. If clocks stood still, it lets 1 ms pass on all of them. Otherwise the issuing clock,
// which samples by the monotonic clock, would not notice it.
func (m *machine) wake() {
	m.paused = 0
	if m.Wake() {
		m.s.now += 1e6
	}
}

func (s *sim) standStill(m *machine, d time.Duration) {
	s.note("%s: stands still for %s", m.name, d)
	m.paused = max(m.paused, s.now+int64(d))
}

// sleep suspends a machine for d.
func (s *sim) sleep(m *machine, d time.Duration) {
	s.note("%s: suspended for %s", m.name, d)
	m.Sleep(d)
	m.paused = s.now + int64(d) + 1e6 // the issuing clock samples by then
}

// pause pauses a virtual machine for d.
func (s *sim) pause(m *machine, d time.Duration, late bool) {
	s.note("%s: paused for %s, its wall clock stands still %t", m.name, d, late)
	m.Pause(d, late)
	m.paused = s.now + int64(d) + 1e6
	m.behind(int64(d))
}

// pace makes the boot clock and the monotonic clock of a machine slow by so many percent for d, or fast.
func (s *sim) pace(m *machine, percent int64, d time.Duration) {
	s.note("%s: its boot clock is %d%% slow for %s", m.name, percent, d)
	m.Pace(percent, d)
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
	s.setSkew(m, m.Skew()+d)
	s.now += 1e6
}

// drift moves a machine's wall clock ahead by d, in steps that the issuing clock follows.
func (s *sim) drift(m *machine, d time.Duration) {
	s.note("%s: clock gains %s", m.name, d)
	for d > 0 {
		by := min(d, 900*time.Millisecond)
		d -= by
		s.setSkew(m, m.Skew()+by)
		s.now += 1e6
		if m.proc != nil {
			m.proc.n.clock.Now()
		}
	}
}

// setSkew sets how far the wall clock is ahead of true time.
func (s *sim) setSkew(m *machine, skew time.Duration) {
	m.SetSkew(skew)
	m.lowest = min(m.lowest, int64(skew))
	s.lowest, s.highest = min(s.lowest, m.lowest), max(s.highest, int64(skew))
}
