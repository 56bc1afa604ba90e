package node

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
)

// act is one thing that happens.
func (s *sim) act() {
	m := s.any()
	p := m.proc
	switch n := s.rng.IntN(100); {
	case n < 20:
		s.pass(time.Duration(s.between(1, 300)) * time.Millisecond)
	case n < 33 && s.depth == 0:
		s.pass(time.Duration(s.between(1, 15)) * time.Second)
	case n < 37 && s.depth == 0:
		s.pass(time.Duration(s.between(15, 120)) * time.Second)
	case p == nil && n < 60:
		if s.depth == 0 {
			s.start(m)
		}
	case p == nil:
		s.disaster(m)
	case n < 55:
		s.keep(p)
	case n < 68:
		s.extend(p)
	case n < 72:
		s.get(p, s.between(1, 20))
	case n < 75:
		s.kill(p)
	case n < 79:
		s.stop(p)
	case n < 84:
		s.note("%s: cut off", p.name)
		p.cut = true
		p.session.Partition()
	case n < 87:
		s.note("%s: reaches ZooKeeper", p.name)
		p.cut = false
		p.session.Heal()
	case n < 89:
		s.note("%s: session expires", p.name)
		p.session.Expire()
	case n < 91:
		p.session.Lag()
	case n < 93:
		d := time.Duration(s.between(1, 100)) * time.Second
		s.note("%s: stands still for %s", p.name, d)
		m.paused = s.now + int64(d)
	case n < 96:
		s.siege(p)
	default:
		s.disaster(m)
	}
}

// siege cuts a process off until about when its lease ends: when others may
// have its slot.
func (s *sim) siege(p *process) {
	if s.depth > 0 || p.acquiring || p.keeping || p.n.serving.Load() == nil {
		return
	}
	left := time.Duration(p.n.claim.H-p.n.now()) * time.Millisecond
	if left <= 0 || left > 10*time.Minute {
		return
	}
	s.note("%s: cut off for the %s of its lease", p.name, left)
	p.cut = true
	p.session.Partition()
	p.session.Expire()
	s.pass(left - time.Duration(s.between(0, 6))*time.Second)
	for range 40 {
		s.pass(time.Duration(s.between(50, 400)) * time.Millisecond)
	}
}

// pass lets time go by. Whoever runs goes on living: now and then a second or
// a heartbeat is missed.
func (s *sim) pass(d time.Duration) {
	for end := s.now + int64(d); s.now < end && s.wrong == ""; {
		s.now = min(end, s.now+int64(s.between(100, 1500))*1e6)
		for _, m := range s.machines {
			if p := m.proc; p != nil && s.depth == 0 {
				if !s.chance(8) {
					s.extend(p)
				}
				if !s.chance(3) {
					s.keep(p)
				}
			}
			if p := m.proc; p != nil {
				s.get(p, s.between(1, 20))
			} else if s.depth == 0 && s.chance(4) {
				s.start(m)
			}
		}
		if s.chance(20) {
			s.mem.ExpireOrphans()
		}
		s.expireSome()
	}
}

// expireSome ends the sessions of processes that are no more, cut off or stand
// still, in time.
func (s *sim) expireSome() {
	for _, m := range s.machines {
		if p := m.proc; p != nil && (p.cut || s.now < m.paused) && s.chance(4) {
			p.session.Expire()
		}
	}
	s.sessions = slices.DeleteFunc(s.sessions, func(old *coordinator.MemSession) bool {
		gone := s.chance(4)
		if gone {
			old.Expire()
		}
		return gone
	})
}

// disaster is what happens to a machine's clock and disk, and to ZooKeeper.
func (s *sim) disaster(m *machine) {
	switch s.rng.IntN(16) {
	case 0:
		s.step(m, -time.Duration(s.between(1, 5))*time.Millisecond)
	case 1:
		s.step(m, -time.Duration(s.between(1, 9000))*time.Millisecond)
	case 2:
		if s.chance(2) {
			s.step(m, -time.Duration(s.between(1, 120))*time.Minute)
		}
	case 3:
		s.step(m, time.Duration(s.between(1, 3000))*time.Millisecond)
	case 4:
		if s.chance(3) {
			s.step(m, time.Duration(s.between(1, 90))*time.Minute)
		}
	case 5, 6, 14: // somebody sets it right
		s.step(m, -time.Duration(m.skew))
	case 7:
		if m.proc == nil {
			s.note("%s: disk lost", m.name)
			s.newDisk(m)
		}
	case 8: // a copy of another's disk, running or not
		from := s.any()
		if m.proc == nil && from != m {
			s.note("%s: gets a copy of %s's disk", m.name, from.name)
			s.inode++
			m.disk, m.print = from.disk.Clone(), localcache.Fingerprint{Inode: fmt.Sprint(s.inode)}
			s.hookDisk(m)
		}
	case 9:
		if m.proc == nil {
			off := int64(s.between(0, localcache.FileSize-1))
			s.note("%s: a byte of the disk rots at %d", m.name, off)
			m.disk.Damage(off, []byte{byte(s.rng.IntN(256))})
		}
	case 10:
		s.note("a leader is elected")
		if s.epoch > 0 {
			s.elect()
		}
	case 11:
		s.faults = !s.faults
	default:
		s.loseData()
	}
}

func (s *sim) step(m *machine, d time.Duration) {
	s.note("%s: clock steps by %s", m.name, d)
	m.skew += int64(d)
}

// loseData wipes ZooKeeper, puts an old copy back or deletes a slot; or takes
// the copy. What no owner can notice cannot be made good, so some settled
// owner with time left on its lease gets to ZooKeeper before anybody settles.
func (s *sim) loseData() {
	if s.depth > 0 {
		return
	}
	if s.snapshot == nil || s.chance(3) {
		s.note("a copy of ZooKeeper's data is taken")
		s.snapshot = s.mem.Snapshot()
		return
	}
	witnesses := s.owners()
	if len(witnesses) == 0 {
		return
	}
	if s.chance(2) {
		s.note("ZooKeeper is wiped")
		s.mem.Wipe()
	} else {
		s.note("ZooKeeper gets its old data back")
		s.mem.Restore(s.snapshot)
		if s.epoch > 0 {
			s.elect()
		}
	}
	s.snapshot = nil
	faults := s.faults
	s.faults = false
	if s.chance(2) {
		// They come back just in time: what settling is for.
		for _, p := range witnesses {
			p.session.Partition()
			p.cut = true
		}
		s.pass(simSettle - time.Duration(s.between(1500, 6000))*time.Millisecond)
	}
	if !slices.ContainsFunc(witnesses, func(p *process) bool { return !p.dead && s.now >= p.paused }) {
		s.over = true // nobody is left who could have noticed
		return
	}
	s.depth = simDepth // nothing comes in between
	for _, p := range witnesses {
		p.cut = false
		p.session.Heal()
		if !p.dead {
			s.keep(p)
		}
	}
	s.faults, s.depth = faults, 0
}

// owners are the processes that hold a settled lease which is not about to end.
func (s *sim) owners() (owners []*process) {
	for _, m := range s.machines {
		if p := m.proc; p != nil && !p.acquiring && !p.keeping && !p.saving && s.now >= m.paused {
			p.n.mu.Lock()
			if p.n.serving.Load() != nil && p.n.claim.Settled && p.n.claim.H-p.n.now() > (20*time.Second).Milliseconds() {
				owners = append(owners, p)
			}
			p.n.mu.Unlock()
		}
	}
	return owners
}

// run plays a history and returns what it violated.
func (s *sim) run(actions int) string {
	for range actions {
		s.act()
		if s.wrong != "" || s.over {
			break
		}
	}
	return s.wrong
}

var (
	simSeed  = flag.Uint64("sim.seed", 0, "play this history alone, and print it")
	simCount = flag.Int("sim.count", 0, "how many histories to play; 0: what fits a test run")
)

func TestSimulation(t *testing.T) {
	const actions = 200
	if *simSeed != 0 {
		s := newSim(*simSeed)
		s.run(actions)
		for _, line := range s.history {
			fmt.Fprintln(os.Stderr, line)
		}
		if s.wrong != "" {
			t.Fatal(s.wrong)
		}
		return
	}
	count := *simCount
	if count == 0 {
		count = 500
		if underRace { // there is one goroutine: the detector only costs time
			count = 60
		}
	}
	ids := 0
	for seed := uint64(1); seed <= uint64(count); seed++ {
		s := newSim(seed)
		if s.run(actions) != "" {
			history := s.history
			for _, line := range history[max(0, len(history)-80):] {
				t.Log(line)
			}
			t.Fatalf("seed %d, after %d actions' notes: %s\nplay it again: go test ./node -run TestSimulation -sim.seed=%s", seed, len(history), s.wrong, strconv.FormatUint(seed, 10))
		}
		ids += s.ids
	}
	t.Logf("%d histories, %d IDs", count, ids)
}
