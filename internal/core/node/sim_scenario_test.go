package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// scenario is a scripted sequence of events, aimed at one safeguard. Functions named play... play
// one. play reports whether the sequence came to its point: other events may prevent that.
type scenario struct {
	name string
	play func(*sim) bool
	in   rare // what it needs of a world
}

// rare is a property that a scenario needs and few worlds have.
type rare int

const (
	anyWorld rare = iota
	roomy         // several workers can be had
	wide          // and more than are created at once
)

var scenarios = []scenario{
	{"holder cut off to the end of its lease", (*sim).playBound, anyWorld},
	{"write held up until another has the worker", (*sim).playLateWrite, anyWorld},
	{"release held up until another has the worker", (*sim).playLateRelease, anyWorld},
	{"worker handed over at once", (*sim).playHandover, anyWorld},
	{"worker taken, lost and taken again", (*sim).playChain, anyWorld},
	{"fresh worker after a rollback", (*sim).playRotation, roomy},
	{"fresh worker, and the old one again", (*sim).playBackAgain, roomy},
	{"crash at the end of what is reserved", (*sim).playCrash, anyWorld},
	{"crash around a write to ZooKeeper", (*sim).playGrant, anyWorld},
	{"copy of a disk", (*sim).playCopy, anyWorld},
	{"older copy of a state file", (*sim).playOldFile, anyWorld},
	{"data lost, holders back just in time", (*sim).playLoss, anyWorld},
	{"data lost, another takes the worker with the same term", (*sim).playEqualTerm, anyWorld},
	{"data lost while nobody is there", (*sim).playAllGone, anyWorld},
	{"data lost after a worker changed hands", (*sim).playForgotten, anyWorld},
	{"one record lost", (*sim).playLostRecord, anyWorld},
	{"data lost, holders notice by themselves", (*sim).playNoticed, anyWorld},
	{"data lost after the cluster grew", (*sim).playGrowth, wide},
	{"thawed too early", (*sim).playThawedTooEarly, roomy},
	{"started in another ZooKeeper", (*sim).playElsewhere, anyWorld},
	{"copy of a state written back after a release", (*sim).playReleasedCopy, anyWorld},
	{"leader's clock leaps by more than a lease", (*sim).playLeaderLeap, anyWorld},
	{"cut off with a clock ahead, data lost", (*sim).playAhead, roomy},
	{"all killed, older data, started again", (*sim).playAllKilled, anyWorld},
	{"holder paused, data lost meanwhile", (*sim).playPausedPeer, roomy},
	{"older data, worker released by hand, holder starts again", (*sim).playReleasedByHand, anyWorld},
}

func (s *sim) playScenario() {
	scenarios := s.scenarios()
	t := pick(s, scenarios...)
	for least := s.likes(); t.in < least || t.in > anyWorld && s.crowded; {
		t = pick(s, scenarios...)
	}
	s.note("scenario: %s", t.name)
	faults := s.faults
	s.calm, s.faults = true, false
	if s.chance(2) {
		s.mend()
	}
	reached := t.play(s)
	if reached {
		s.played[t.name]++
	}
	for _, m := range s.machines {
		m.stall = nil
		if m.proc != nil {
			m.proc.trap, m.proc.then, m.proc.fails = nil, nil, nil
		}
	}
	s.calm, s.faults = false, faults
	s.note("scenario ends, reached %t", reached)
}

// likes returns what the next scenario must need of the world, at the least. A world that few
// scenarios fit plays those more often.
func (s *sim) likes() rare {
	switch {
	case s.layout.WorkerBits == 4 && s.chance(4):
		return wide
	case !s.crowded && s.chance(3):
		return roomy
	}
	return anyWorld
}

// mend ends all faults: of disks, connections and clocks, and of machines that stand still.
func (s *sim) mend() {
	for _, m := range s.machines {
		s.ail(m, noTrouble)
		m.wake()
		if p := m.proc; p != nil && p.cut {
			s.heal(p)
		}
		if skew := m.skew(); skew > 2e8 || skew < -2e8 {
			s.step(m, time.Duration(int64(s.between(-100, 100))*1e6-skew))
		}
	}
}

// holders returns the processes that are connected and serve, by a confirmed lease of which more
// than a quarter of the longest lease is left.
func (s *sim) holders() (holders []*process) {
	for _, m := range s.machines {
		if p := m.proc; p != nil && !p.acquiring && !p.keeping && !p.extending && !p.saving && s.now >= m.paused &&
			!p.cut &&
			p.n.serving.Load() != nil && p.n.view.Load().Claim.EverConfirmed &&
			p.n.view.Load().Claim.LeaseUntil-p.n.now() > s.lease.Milliseconds()/4 {
			holders = append(holders, p)
		}
	}
	return holders
}

// holder returns one of the holders, and waits for one if there is none. It returns nil if none comes.
func (s *sim) holder() *process {
	for i := range 40 {
		if o := s.holders(); len(o) > 0 {
			return pick(s, o...)
		}
		if s.done() {
			return nil
		}
		if i == 10 {
			s.mend()
		}
		if i == 20 { // perhaps a dead process still holds it
			s.wait(0, 0)
		}
		if m := s.any(); m.proc == nil {
			if i > 30 {
				s.newDisk(m)
			}
			s.start(m)
		}
		s.live(s.heartbeat, s.heartbeat)
	}
	return nil
}

// other clears and returns a machine that is none of those given.
func (s *sim) other(than ...*machine) *machine {
	var free []*machine
	for _, m := range s.machines {
		if !slices.Contains(than, m) {
			free = append(free, m)
		}
	}
	m := pick(s, free...)
	s.clear(m)
	return m
}

// clear kills the process on a machine, if there is one, and gives the machine a blank disk. It
// sets the machine's clock right if that is off by more than 200 ms.
func (s *sim) clear(m *machine) {
	if p := m.proc; p != nil {
		s.kill(p, false)
		p.session.Expire()
	}
	s.newDisk(m)
	m.trouble = noTrouble
	m.wake()
	if skew := m.skew(); skew > 2e8 || skew < -2e8 {
		s.step(m, -time.Duration(skew))
	}
}

// wait lets time pass until the lease bound of worker w is only before away. It returns false if
// the bound is not known, is more than 15 minutes away, or the history has ended.
func (s *sim) wait(w int, before time.Duration) bool {
	left := time.Duration(s.workers[w].record.leaseUntil)*time.Millisecond - time.Duration(s.now) - before
	if !s.workers[w].known || left > 15*time.Minute {
		return false
	}
	if left > 0 {
		s.live(left, max(left/30, s.heartbeat/4))
	}
	return !s.done()
}

// fine lets up to 0.4 s pass in one small step.
func (s *sim) fine() {
	d := time.Millisecond + s.upTo(400*time.Millisecond)
	s.live(d, d)
}

// watch lets d pass in small steps.
func (s *sim) watch(d time.Duration) {
	for end := s.now + int64(d); s.now < end && !s.done(); {
		s.fine()
	}
}

// queue starts new nodes on a machine until one holds worker w. It returns that process, or nil
// if none holds it after d.
func (s *sim) queue(m *machine, w int, d time.Duration) *process {
	for end := s.now + int64(d); s.now < end && !s.done(); s.fine() {
		if s.deadline != 0 && s.now >= s.deadline {
			break // no time passes
		}
		if m.proc == nil {
			s.aim(w)
			if p := s.start(m); p != nil {
				s.keep(p)
			}
		}
		switch p := m.proc; {
		case p == nil || p.acquiring:
		case p.held() == w:
			return p
		default:
			s.clear(m)
		}
	}
	return nil
}

// aim sets the number of the next ticket, so that the next new node tries worker w first. The
// numbers only go up, as in ZooKeeper. If a ticket of that number existed, the code under test
// would draw a random number, which the seed does not decide.
func (s *sim) aim(w int) {
	s.aimed++
	_ = s.Mem.SetCreateCount("/tickets", int32(s.aimed*4096+w))
}

// serves waits for up to d until a process serves. It reports whether the process does.
func (s *sim) serves(p *process, d time.Duration) bool {
	for end := s.now + int64(d); s.now < end && !s.done(); s.fine() {
		if p.dead || p.acquiring {
			return false
		}
		if p.n.serving.Load() != nil {
			return true
		}
	}
	return false
}

// burst asks a process for all IDs that it can make now.
func (s *sim) burst(p *process) {
	for range 20 + 2*int(s.borrow/s.layout.Unit) {
		s.get(p, 1<<s.layout.SequenceBits)
	}
}

// quietly calls f with no other event in between, and with no random failure of a call.
func (s *sim) quietly(f func()) {
	depth := s.depth
	s.depth = simDepth
	f()
	s.depth = depth
}

// restart returns the process of a machine. If none runs, it starts one, disconnected from ZooKeeper if cut.
func (s *sim) restart(m *machine, cut bool) *process {
	if m.proc != nil {
		return m.proc
	}
	p := s.start(m)
	if p != nil && cut {
		s.cutOff(p)
	}
	return p
}

// crowd leaves only worker 0 free in a crowded world. A remote node holds all others, and puts
// its records back at once when ZooKeeper has lost data. The lease bounds of those workers have
// passed, but their live locks keep other nodes off.
func (s *sim) crowd() {
	if !s.crowded {
		return
	}
	ctx := context.Background()
	if err := s.admin.EnsureRoot(ctx, "/tickets", "/workers", "/live"); err != nil {
		s.violated(wrongSim, "%v", err)
	}
	for w := 1; w < s.layout.Workers(); w++ {
		far := coordinator.Slot{Node: "far-away", Term: 1, Nonce: "far", LeaseUntil: s.now/1e6 + 1, Confirmed: true}
		data, stat, err := s.admin.Get(ctx, slotPath(w))
		if err == nil && text(data, "node") != far.Node {
			if has(data, "confirmed") && !has(data, "released") {
				continue // already taken
			}
			far.Term = number(data, "term") + 1
		}
		record, _ := json.Marshal(far)
		if err == nil {
			_, err = s.admin.Set(ctx, slotPath(w), record, stat.Version)
		} else {
			_, err = s.admin.Create(ctx, slotPath(w), record, store.Persistent)
		}
		lock := fmt.Sprintf("/live/%04d", w)
		_ = s.admin.Delete(ctx, lock, store.AnyVersion)
		if _, e := s.admin.Create(ctx, lock, nil, store.Ephemeral); err != nil || e != nil {
			s.violated(wrongSim, "%v, %v", err, e)
		}
	}
}
