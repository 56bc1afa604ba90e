package node

import (
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// act makes one random event happen.
func (s *sim) act() {
	m := s.any()
	p := m.proc
	switch n := s.rng.IntN(100); {
	case n < 30:
		s.live(s.upTo(s.heartbeat), s.heartbeat/5)
	case n < 40 && s.depth == 0:
		s.live(s.upTo(15*time.Second), s.heartbeat)
	case n < 42 && s.depth == 0:
		s.live(s.upTo(2*time.Minute), 4*s.heartbeat)
	case p == nil && n < 65:
		if s.depth == 0 {
			s.start(m)
		}
	case p == nil:
		s.disaster(m)
	case n < 55:
		s.keep(p)
	case n < 65:
		s.extend(p)
	case n < 69:
		s.get(p, s.between(1, 64))
	case n < 72:
		s.kill(p, s.chance(3))
	case n < 75:
		s.stop(p)
	case n < 80:
		s.cutOff(p)
	case n < 85:
		s.heal(p)
	case n < 87:
		s.note("%s: session expires", p.name)
		p.session.Expire()
	case n < 89:
		p.session.Lag()
	case n < 91:
		switch d := time.Duration(s.between(1, 100)) * time.Second; s.rng.IntN(4) {
		case 0:
			s.sleep(m, d)
		case 1:
			s.pause(m, s.drawPause(), s.chance(2))
		default:
			s.standStill(m, d)
		}
	case n < 93:
		s.deliver()
	default:
		s.disaster(m)
	}
}

func (s *sim) cutOff(p *process) {
	s.note("%s: cut off", p.name)
	p.cut = true
	p.session.Partition()
}

func (s *sim) heal(p *process) {
	s.note("%s: reaches ZooKeeper", p.name)
	p.cut = false
	p.session.Heal()
	if s.epoch > 0 && len(s.recent) > 0 && s.chance(4) { // the server lags behind what this client has seen
		p.session.LagTo(pick(s, s.recent...))
	}
}

// remember copies the data for servers that lag behind. It keeps the last three copies.
func (s *sim) remember() {
	if s.recent = append(s.recent, s.Mem.Snapshot()); len(s.recent) > 3 {
		s.recent = s.recent[1:]
	}
}

// live lets time pass for d, in steps of about the length given. Processes do what is due, and
// now and then miss an extension or a heartbeat.
func (s *sim) live(d, step time.Duration) {
	for end := s.now + int64(d); s.now < end && !s.done(); {
		if s.deadline != 0 { // a scenario may set it meanwhile
			end = min(end, s.deadline)
		}
		s.now = max(s.now, min(end, s.now+int64(step/10)+int64(s.upTo(step*3/2)))) // a step may have passed the end
		for _, m := range s.machines {
			if p := m.proc; p != nil {
				s.lives(p)
			} else if s.depth == 0 && !s.calm && s.chance(4) {
				s.start(m)
			}
		}
		if s.chance(20) {
			s.Mem.ExpireOrphans()
			s.deliver()
			s.remember()
		}
		s.expireSome()
	}
}

// deliver lets writes arrive that were late. Their processes are not inside those calls any more, so they do not stall
// there.
func (s *sim) deliver() {
	s.depth++
	defer func() { s.depth-- }()
	s.Mem.Deliver()
}

// lives runs the loops of a process that are due, and asks it for a few IDs.
func (s *sim) lives(p *process) {
	if s.now < p.paused {
		return
	}
	if s.now >= p.extendAt || p.n.phase() == Waiting || len(p.n.wakeDisk) > 0 {
		drain(p.n.wakeDisk)
		if !s.chance(8) {
			s.extend(p)
		}
	}
	mayConfirm := p.n.view.Load().Stage != coordinator.Confirmed && p.n.elapsed.AtLeast() >= p.n.keeper.coord.ConfirmAt()
	if s.now >= p.keepAt || p.acquiring || mayConfirm || len(p.n.wakeKeeper) > 0 {
		drain(p.n.wakeKeeper)
		if !s.chance(8) {
			s.keep(p)
		}
	}
	s.get(p, s.between(1, 6))
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// expireSome ends, sooner or later, the sessions of processes that have ended, are cut off or stand still.
func (s *sim) expireSome() {
	for _, m := range s.machines {
		if p := m.proc; p != nil && (p.cut || s.now < m.paused) && s.chance(8) {
			p.session.Expire()
		}
	}
	s.sessions = slices.DeleteFunc(s.sessions, func(old *memzk.Session) bool {
		gone := s.chance(8)
		if gone {
			old.Expire()
		}
		return gone
	})
}

// disaster makes something happen to a machine's clock or disk, or to ZooKeeper. It may also
// end such a fault, or run a command of an operator.
func (s *sim) disaster(m *machine) {
	switch s.rng.IntN(21) {
	case 0:
		s.step(m, -s.upTo(5*time.Millisecond))
	case 1:
		s.step(m, -s.upTo(9*time.Second))
	case 2:
		if s.chance(2) {
			s.step(m, -time.Duration(s.between(1, 120))*time.Minute)
		}
	case 3:
		s.step(m, s.upTo(3*time.Second))
	case 4:
		if s.chance(3) {
			s.step(m, time.Duration(s.between(1, 90))*time.Minute)
		}
	case 5, 6, 7: // the clock is set right
		s.step(m, -time.Duration(m.skew()))
	case 8:
		if m.proc == nil {
			s.note("%s: disk lost", m.name)
			s.newDisk(m)
		}
	case 9:
		s.copyDisk(m, s.any())
	case 10:
		s.rot(m, int64(s.between(0, len(m.Disk.Disk())-1)))
	case 11:
		if s.epoch > 0 {
			s.note("a leader is elected")
			s.elect()
		}
	case 12:
		if !s.calm {
			s.faults = !s.faults
		}
	case 13, 14:
		s.ail(m, pick(s, noTrouble, diskFull, diskReadOnly))
	case 15:
		if s.snapshot == nil || s.chance(3) {
			s.note("a copy of ZooKeeper's data is taken")
			s.snapshot = s.Mem.Snapshot()
		}
	case 16:
		s.leaderSteps()
	case 17:
		s.operate()
	case 18:
		s.pace(m, pick[int64](s, -15, 15, int64(s.between(-10, 50))), s.upTo(pick(s, 2*s.confirm, time.Hour)))
	default:
		s.ail(m, noTrouble)
	}
}

// leaderSteps moves the clock of ZooKeeper's leader, as when another leader is elected.
func (s *sim) leaderSteps() {
	by := time.Duration(s.between(-2000, 2000))*time.Millisecond - s.Leads()
	s.note("the leader's clock steps by %s", by)
	s.Leap(by)
}

func (s *sim) ail(m *machine, t trouble) {
	if m.trouble != t {
		s.note("%s: disk: %s", m.name, [...]string{"well", "full", "read-only"}[t])
		m.trouble = t
	}
}

// copyDisk gives m a copy of another machine's disk, if no process runs on m. The other machine may be running.
func (s *sim) copyDisk(m, from *machine) {
	if m.proc == nil && from != m {
		s.note("%s: gets a copy of %s's disk", m.name, from.name)
		s.giveDisk(m, from.Disk.Clone(), s.newInode())
	}
}

// run plays a history of so many actions. It returns what the history violated, or "".
func (s *sim) run(actions int) string {
	for range actions {
		if s.chance(12) {
			s.playScenario()
		} else {
			s.act()
		}
		if s.done() {
			break
		}
	}
	return s.wrong
}
