package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/story"
	"github.com/flaked/flaked/worker"
)

// tale is a history of the simulation that is written by hand: nothing in it is random, and nothing happens inside of
// calls. Its text is in testdata, for people who review a change of the core.
type tale struct {
	*sim
	*story.Story
	nonces int
	asked  []*machine         // whose clients ask every second
	again  map[*machine]int64 // when its node is started again, true time in ns
	cut    bool               // ZooKeeper cannot be reached
}

const taleStep = 100 * time.Millisecond

// newTale returns a cluster of empty machines with the default times, a lease of one minute, and so many worker bits.
func newTale(machines int, workerBits uint8) *tale {
	layout := worker.Leaf()
	layout.WorkerBits = workerBits
	s := &sim{rng: rand.New(rand.NewPCG(1, 1)), played: map[string]int{}, depth: simDepth, calm: true}
	s.world = world{layout: layout, lease: time.Minute, confirm: 12 * time.Second, heartbeat: 3 * time.Second,
		reserve: 3 * time.Second, bootstrap: true, slowHeartbeat: 1 << 60}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.now = begin.UnixNano()
	s.checks.init(layout.Workers())
	s.Cluster = memcluster.New(func() int64 { return s.now })
	s.elsewhere = s.ZooKeeper()
	s.Mem.SetEpoch(1)
	s.admin, s.operator = s.Mem.Session(), s.Mem.Session()
	a := &tale{sim: s, again: map[*machine]int64{}, Story: &story.Story{Begin: begin.UnixMilli(), Now: func() int64 { return s.now / 1e6 }, Hidden: []string{
		"node", "name", "ticket", "generation", "reported_clock", "heartbeat_ms", "slots", "datacenter", "on_rollback",
		"sequence_start", "segment_start",
	}, Drawn: []string{"nonce"}, Shown: []string{
		"term", "inc", "floor", "reserved", "lease", "limit", "end", "confirmed", "confirms", "stopped", "lost",
	}}}
	s.tell = a.tell
	for i := range machines {
		s.machines = append(s.machines, s.newMachine(string(rune('A'+i)), 0))
	}
	return a
}

func (a *tale) tell(p *process, cfg *Config) func() string {
	cfg.Store = a.Store(p.name, cfg.Store)
	cfg.Trace = a.Trace(p.name)
	cfg.Rand = func(uint32) uint32 { return 0 }
	cfg.Identity = func() string { return "id-" + p.name }
	cfg.ReleaseOnExit, cfg.Heartbeat = false, a.heartbeat
	return func() string { a.nonces++; return fmt.Sprint("n", a.nonces) }
}

// starts runs a node on a machine. If the node ends with an error, it is started again after 10 s.
func (a *tale) starts(m *machine) {
	a.Step(m.name, "start", 4, func() {
		a.Say(fmt.Sprint(m.name, m.runs+1), "starts")
		p := a.start(m)
		if p == nil || p.dead {
			return
		}
		if a.cut {
			p.session.Partition()
		}
		p.extendAt = a.now + int64(time.Second)
		a.keeps(p)
	})
}

// lasts lets time pass. Nodes do what is due, and clients ask every second.
func (a *tale) lasts(d time.Duration) {
	for end := a.now + int64(d); a.now < end; {
		a.now += int64(taleStep)
		for _, m := range a.machines {
			if p := m.proc; p != nil {
				a.does(p)
			} else if at := a.again[m]; at != 0 && a.now >= at {
				delete(a.again, m)
				a.starts(m)
			}
		}
		if a.now%int64(time.Second) == 0 {
			for _, m := range a.asked {
				a.asks(m)
			}
		}
	}
}

// does makes a process do what is due.
func (a *tale) does(p *process) {
	if a.now >= p.extendAt || len(p.n.wakeDisk) > 0 {
		drain(p.n.wakeDisk)
		a.Step(p.name, "extension", 1, func() { a.extend(p) })
		p.extendAt = a.now + int64(time.Second)
	}
	if a.now >= p.keepAt || len(p.n.wakeKeeper) > 0 {
		drain(p.n.wakeKeeper)
		what := "heartbeat"
		if p.acquiring {
			what = "attempt"
		}
		a.Step(p.name, what, 4, func() { a.keeps(p) })
	}
}

// keeps runs one round of the node's keep, and says when the next one is due.
func (a *tale) keeps(p *process) {
	a.keep(p)
	switch {
	case p.dead:
		a.Say(p.name, "ends: %v", p.failed)
		a.again[p.machine] = a.now + int64(10*time.Second)
		return
	case p.acquiring:
		p.keepAt = a.now + int64(time.Second)
		return
	}
	p.keepAt = a.now + int64(a.heartbeat)
	if in := p.n.keeper.coord.ConfirmAt() - p.n.elapsed.AtLeast(); p.n.view.Load().Stage != coordinator.Confirmed && in > 0 {
		p.keepAt = min(p.keepAt, a.now+in)
	}
}

// asks lets a client ask the node on a machine for IDs.
func (a *tale) asks(m *machine) {
	who := "client " + m.name
	a.Step(who, "request", 1, func() {
		p := m.proc
		if p == nil {
			a.Say(who, "gets no connection")
			return
		}
		run, _, err := p.n.Try(3, 0)
		switch f, _ := a.layout.Decode(run.First); {
		case err != nil:
			a.Say(who, "is refused: %v", err)
		case run.Len == 0:
			a.Say(who, "waits")
		default:
			a.Say(who, "gets %d IDs of worker %d, of %+.3f", run.Len, f.Worker,
				float64(a.layout.Start(f.Tick)-a.Begin)/1000)
			c := &p.conns[0]
			c.t = p.n.serving.Load()
			a.check(p, c, run)
		}
	})
}

// stops stops a node.
func (a *tale) stops(m *machine, release bool) {
	p := m.proc
	a.Say(p.name, "stops, and gives its worker back: %t", release)
	p.n.cfg.ReleaseOnExit = release
	a.stop(p)
}

// dies kills a process, and ends its session.
func (a *tale) dies(m *machine) {
	a.Say(m.proc.name, "is killed")
	p := m.proc
	a.kill(p, false)
	p.session.Expire()
}

// cutOff makes ZooKeeper unreachable for all, or reachable.
func (a *tale) cutOff(cut bool) {
	a.Say("ZooKeeper", "can be reached: %t", !cut)
	a.cut = cut
	for _, m := range a.machines {
		switch p := m.proc; {
		case p == nil:
		case cut:
			p.session.Partition()
		default:
			p.session.Heal()
		}
	}
}

func TestStories(t *testing.T) {
	for _, s := range []struct {
		file, about string
		machines    int
		workerBits  uint8
		tell        func(*tale)
	}{
		{"first_start.txt", "Two nodes start in an empty ZooKeeper.", 2, 10, firstStart},
		{"restart.txt", "A node serves. It is killed and starts again from its state directory, with ZooKeeper and without.", 1, 10, restart},
		{"handover.txt", "There are two workers, and two nodes serve with them. Both workers change hands.", 4, 1, handover},
		{"loss.txt", "Two nodes serve. ZooKeeper is put back to a copy that is older than the worker of one of them.", 4, 10, loss},
	} {
		t.Run(s.file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newTale(s.machines, s.workerBits)
				s.tell(a)
				if a.wrong != "" {
					t.Error(a.wrong)
				}
				for _, m := range a.machines { // else -update would leave out what the story is about
					if m.proc == nil && a.again[m] != 0 || m.proc != nil && m.proc.n.serving.Load() == nil {
						t.Errorf("the story ends before node %s serves: let it last longer", m.name)
					}
				}
				a.Check(t, s.file, s.about)
			})
		})
	}
}

// begins lets nodes start one after the other and serve, which is not told.
func (a *tale) begins(on ...*machine) {
	a.Skip(func() {
		for _, m := range on {
			a.starts(m)
			a.lasts(16 * time.Second)
		}
	})
}

func firstStart(a *tale) {
	one, two := a.machines[0], a.machines[1]
	a.Title("The first node creates the cluster, and waits for the confirming time")
	a.asked = a.machines[:1]
	a.starts(one)
	a.lasts(14 * time.Second)
	a.Title("The second one takes the next worker")
	a.asked = a.machines
	a.starts(two)
	a.lasts(16 * time.Second)
	a.Title("The first one stops, and keeps its worker")
	a.stops(one, false)
	a.lasts(4 * time.Second)
}

func restart(a *tale) {
	m := a.machines[0]
	a.begins(m)
	a.asked = a.machines
	a.Title("The node is killed, and starts again. ZooKeeper answers")
	a.dies(m)
	a.starts(m)
	a.lasts(8 * time.Second)
	a.Title("ZooKeeper goes away, and the node is killed. It starts from its state directory alone")
	a.cutOff(true)
	a.dies(m)
	a.starts(m)
	a.lasts(8 * time.Second)
	a.Title("ZooKeeper comes back")
	a.cutOff(false)
	a.lasts(8 * time.Second)
	a.Title("ZooKeeper goes away until the lease has run out")
	a.cutOff(true)
	a.lasts(60 * time.Second)
	a.Title("ZooKeeper comes back")
	a.cutOff(false)
	a.lasts(20 * time.Second)
}

func handover(a *tale) {
	one, two, three, four := a.machines[0], a.machines[1], a.machines[2], a.machines[3]
	a.begins(one, two)
	a.Title("A third node finds no free worker")
	a.asked = []*machine{one, three}
	a.starts(three)
	a.lasts(3 * time.Second)
	a.Title("The first one stops, and gives its worker back. The third one takes it")
	a.stops(one, true)
	a.asked = []*machine{three}
	a.lasts(24 * time.Second)
	a.Title("The machine of the second one is lost. A new node waits until its lease has run out")
	a.dies(two)
	a.asked = []*machine{four}
	a.starts(four)
	a.lasts(83 * time.Second)
}

func loss(a *tale) {
	one, two, three, four := a.machines[0], a.machines[1], a.machines[2], a.machines[3]
	a.begins(one)
	snapshot := a.Mem.Snapshot()
	a.begins(two)
	a.Title("ZooKeeper gets a copy from before the second node came. A new node takes the worker that looks free")
	a.asked = []*machine{two, three}
	a.Say("ZooKeeper", "has the data of the copy")
	a.Mem.Restore(snapshot)
	a.Mem.SetEpoch(2)
	a.forget()
	a.starts(three)
	a.lasts(6 * time.Second)
	delete(a.again, three)
	a.Title("Another one starts while registration is frozen")
	a.asked = []*machine{two, four}
	a.starts(four)
	a.lasts(117 * time.Second)
}
