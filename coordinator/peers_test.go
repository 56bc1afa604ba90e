package coordinator

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/timeguard"
)

func (l *lab) liveHolder(worker int) int64 {
	_, stat, _ := l.admin.Get(l.Context(), lockPath(worker))
	return stat.EphemeralOwner
}

// A fenced node deletes its live lock, even if ZooKeeper does not answer at first. Otherwise the lock would keep all
// nodes off the slot for as long as the process runs.
func TestFencedLeavesNoLock(t *testing.T) {
	for name, fault := range map[string]memzk.Fault{"answered": memzk.NoFault, "not answered": memzk.FailBefore} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			l.put(0, Slot{Node: "b", Nonce: "b", Term: 2, LeaseUntil: l.now + 1000, Confirmed: true,
				History: l.taken(0)})
			l.forget()
			a.hook = faulty(fault, 0, 1, touching("delete", lockPath(0)))
			_, err := a.beat()
			wantFenced(t, err)
			a.hook = nil
			l.pass(7 * time.Second)
			a.must(a.register())
			a.confirm()
			l.disjoint()
		})
	}
}

func TestPeers(t *testing.T) {
	l := newLab(t, 64)
	l.wipe()
	l.Mem.SetEpoch(2)
	l.init(l.cl)
	a, b, c := l.serving("A"), l.serving("B"), l.serving("C")
	b.SetSkew(700 * time.Millisecond)
	c.SetSkew(-300 * time.Millisecond)
	l.serve(3 * time.Second)
	peers := func(want ...int64) {
		t.Helper()
		got, err := a.co.ReadPeerClocks(t.Context(), a.claim.Worker, Beat{})
		if err != nil {
			t.Fatal(err)
		}
		var offsets []int64
		for _, r := range got {
			offsets = append(offsets, r.Sent-r.Stamp)
		}
		if len(offsets) != len(want) {
			t.Fatalf("offsets %v, want %v", offsets, want)
		}
		for i := range want {
			if offsets[i] != want[i] {
				t.Errorf("offsets %v, want %v", offsets, want)
			}
		}
	}
	peers(700, -300)
	l.pass(9 * time.Second) // three heartbeats
	a.mustBeat()
	peers(700, -300)
	l.pass(time.Millisecond)
	a.mustBeat() // now our write shows that theirs are too old
	peers()
	b.mustBeat()
	peers(700)
	if _, err := b.co.Heartbeat(t.Context(), Report{Phase: "refusing"}); err != nil { // it does not trust its clock
		t.Fatal(err)
	}
	peers()
	b.mustBeat()
	peers(700)
	l.Mem.SetEpoch(3) // another leader, with another clock
	a.mustBeat()
	peers()
	c.mustBeat()
	peers(-300)
	l.put(2, Slot{}) // unreadable
	l.forget()
	peers()
	l.remove(lockPath(1))
	b.peers()
	b.mustBeat()
	peers(700)
	l.remove(livePath + "/0000")
	l.remove(livePath + "/0001")
	l.remove(livePath + "/0002")
	l.remove(livePath)
	peers()
}

// kill -9 leaves the node's live lock behind. The node's next process keeps the slot and replaces that lock.
func TestOwnLockLingers(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	old := l.liveHolder(0)
	a.crash()
	a.hook = func(memzk.Call) memzk.Fault {
		if l.liveHolder(0) == 0 {
			t.Error("for a moment the node does not count as live")
		}
		return memzk.NoFault
	}
	a.must(a.start())
	a.confirm()
	if now := l.liveHolder(0); a.claim.Worker != 0 || now == old || now != a.sess.SessionID() {
		t.Errorf("worker %d, lock of session %d, before %d, ours %d", a.claim.Worker, now, old, a.sess.SessionID())
	}
	l.expire()
	if l.liveHolder(0) != a.sess.SessionID() {
		t.Error("the lock went with the old session")
	}
}

// A process remembers a holder whose record it has read, for as long as the lease may run. An older copy of ZooKeeper's
// data does not change that.
func TestMetPeersAreRememberedForALease(t *testing.T) {
	now := int64(labStart)
	elapsed := timeguard.NewElapsed(timeguard.System())
	c := New(Config{Now: func() int64 { return now }, Elapsed: elapsed})
	cl := Cluster{UUID: "u", LeaseMs: time.Hour.Milliseconds()}
	c.Join(cl)
	met := func() (peers []string) {
		for _, p := range c.Met() {
			peers = append(peers, fmt.Sprintf("%s %d %s", p.Name, p.Worker, p.Address))
		}
		slices.Sort(peers)
		return peers
	}
	wants := func(what string, want ...string) {
		t.Helper()
		if got := met(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	reads := func(worker int, s Slot) {
		c.meet([]int{worker, 9}, []store.Record{{Found: true, Data: s.marshal()}, {}})
	}
	holder := func(node string, term int64) Slot {
		return Slot{Node: node, Nonce: "x", Term: term, LeaseUntil: 1, Labels: Labels{Name: node, Address: node + ":1"}}
	}
	stopped := func(s Slot) Slot { s.Stopped = true; return s }
	reads(0, holder("a", 1))
	reads(1, holder("b", 5))
	for worker, s := range []Slot{2: {Node: "e", Term: 1, Nonce: "x"}, 3: freeSlot(), 4: {StandsIn: true, LeaseUntil: 1},
		5: stopped(holder("c", 1))} {
		if worker > 1 {
			reads(worker, s)
		}
	}
	long := holder("f", 1)
	long.Name = strings.Repeat("f", maxMetText)
	reads(6, long)
	wants("holders that may run, with an address", "a 0 a:1", "b 1 b:1")

	moved := holder("b", 5)
	moved.Address = "b:2"
	reads(1, moved)
	wants("the present address", "a 0 a:1", "b 1 b:2")
	reads(1, holder("old", 3))
	reads(1, stopped(holder("old", 4)))
	reads(1, holder("new", 5))
	wants("a restored copy shows former holders", "a 0 a:1", "b 1 b:2", "new 1 new:1")
	reads(1, stopped(holder("b", 6)))
	wants("b has come back and stopped", "a 0 a:1")
	released := holder("a", 2)
	released.Released, released.ReleasedBy = true, "operator"
	reads(0, released)
	wants("an operator stops no holder", "a 0 a:1")
	released.ReleasedBy = ""
	reads(0, released)
	wants("a has given its worker back")

	reads(0, holder("a", 7))
	reads(1, holder("b", 7))
	now += 30 * time.Minute.Milliseconds()
	reads(1, holder("b", 7))
	now += (30*time.Minute + metMargin).Milliseconds() + 1
	wants("a was not read for longer than a lease", "b 1 b:1")

	next := New(Config{Now: func() int64 { return now }, Elapsed: elapsed})
	next.Remember("u", c.Met())
	next.Join(cl)
	if !reflect.DeepEqual(next.Met(), c.Met()) {
		t.Errorf("after a restart: %+v", next.Met())
	}
	cl.UUID = "another"
	c.Join(cl)
	wants("another cluster")
}

// All peers that a process remembers fit into one reply, however long the texts in their records are.
func TestMetIsBounded(t *testing.T) {
	c := New(Config{Now: func() int64 { return labStart }})
	c.met.lease = 1
	for worker := range maxMet + 10 {
		c.met.note(worker, Slot{Node: "n", Term: 1, Labels: Labels{Address: "a"}}, labStart)
	}
	if got := c.Met(); len(got) != maxMet || got[0].Worker != 10 || got[maxMet-1].Worker != maxMet+9 {
		t.Errorf("%d peers", len(got))
	}
}

// In a cluster of many nodes, somebody soon knows a node that has come last.
func TestManyNodesMeetTheLastOne(t *testing.T) {
	l := newLab(t, maxSample+3)
	var all []*member
	for k := range maxSample + 2 {
		all = append(all, l.serving(fmt.Sprint("n", k)))
	}
	beats := func(n int) {
		for range n {
			l.pass(3 * time.Second)
			for _, m := range all {
				if _, err := m.co.ReadPeerClocks(t.Context(), m.claim.Worker, m.mustBeat()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	beats(3)
	last := l.node("last")
	last.must(last.register())
	last.must(last.co.EnsureLiveLock(last.ctx()))
	all = append(all, last)
	known := func() bool {
		return slices.ContainsFunc(all[:maxSample+2], func(m *member) bool {
			return slices.ContainsFunc(m.co.Met(), func(p Peer) bool { return p.Node == last.claim.Node })
		})
	}
	if known() {
		t.Fatal("known before anybody has looked")
	}
	beats(2 * relistAfter)
	if !known() {
		t.Error("nobody has met it")
	}
}
