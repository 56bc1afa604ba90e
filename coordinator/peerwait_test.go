package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A node hears the slot of one peer, first at 1 s after its session has begun, and later when the confirming time is
// over.
func TestPeerWait(t *testing.T) {
	const confirm, beat = 12 * time.Second, 3 * time.Second
	const stamp, clock = int64(1_000_000), int64(5_000_000)
	window := (confirm + 2*beat).Milliseconds()
	holder := Slot{Node: "b", Term: 1, Nonce: "n", LeaseUntil: 1 << 50, Incarnation: 2, Followed: Followed{Compared: new(int64(2))}}
	with := func(change func(*Slot)) Slot { s := holder; change(&s); return s }
	for name, row := range map[string]struct {
		slot        Slot
		zxid, mtime int64
		gap         bool // in the node's chain
		early, late bool // whether the node waits
	}{
		"has compared":         {slot: holder, zxid: 51, mtime: stamp + 1},
		"no named sequences":   {slot: with(func(s *Slot) { s.Compared = nil }), zxid: 51, mtime: stamp + 1},
		"compares":             {slot: with(func(s *Slot) { s.Compares, s.Compared = true, nil }), zxid: 51, mtime: stamp, early: true, late: true},
		"compared before":      {slot: with(func(s *Slot) { s.Compared = new(int64(1)) }), zxid: 51, mtime: stamp, early: true, late: true},
		"in an earlier one":    {slot: with(func(s *Slot) { s.Incarnation = 1 }), zxid: 51, mtime: stamp, early: true, late: true},
		"silent":               {slot: holder, zxid: 50, mtime: stamp - window, early: true},
		"silent for longer":    {slot: holder, zxid: 50, mtime: stamp - window - 1},
		"the leader has leapt": {slot: with(func(s *Slot) { s.ReportedClock = clock - window }), zxid: 50, mtime: 1, early: true},
		"another leap":         {slot: with(func(s *Slot) { s.ReportedClock = clock + window + 1 }), zxid: 50, mtime: 1},
		"silent since a gap":   {slot: holder, zxid: 50, mtime: 1, gap: true, early: true},
		"stopped":              {slot: with(func(s *Slot) { s.Stopped = true }), zxid: 50, mtime: stamp},
		"released":             {slot: with(func(s *Slot) { s.Released = true }), zxid: 50, mtime: stamp},
		"taken from it":        {slot: with(func(s *Slot) { s.Released, s.ReleasedBy = true, "me" }), zxid: 51, mtime: stamp, early: true},
		"lost":                 {slot: Slot{StandsIn: true, LeaseUntil: 1}, zxid: 51, mtime: stamp, early: true},
		"unreadable":           {zxid: 51, mtime: stamp, early: true},
		"never held":           {slot: freeSlot(), zxid: 50, mtime: stamp},
		"missing":              {early: true},
	} {
		h := NewPeerWait(FirstBeat{Session: 7, Zxid: 50, Stamp: stamp, Clock: clock, Chained: !row.gap,
			Window: ReportWindow(confirm, beat), Worker: 0, Highest: 1})
		r := store.Record{Found: name != "missing", Data: row.slot.marshal(),
			Stat: store.Stat{Mzxid: row.zxid, Mtime: row.mtime}}
		hear := func(at time.Duration) bool {
			if !h.Over() {
				h.Note([]store.Record{r}, 2, int64(at), confirm)
			}
			return !h.Over()
		}
		if early := hear(time.Second); early != row.early {
			t.Errorf("%s: waits %t", name, early)
		}
		r.Stat.Mzxid += 5 // of a later heartbeat
		if row.zxid <= 50 {
			r.Stat.Mzxid = row.zxid
		}
		if late := hear(confirm); late != row.late {
			t.Errorf("%s: waits %t after the confirming time", name, late)
		}
		if hear(2*confirm-1) != row.late || hear(2*confirm) {
			t.Errorf("%s: does not wait for the confirming time since it has said something", name)
		}
	}
}

// A node that has reported less than two heartbeats ago hears a peer whose last report is two heartbeats older.
func TestPeerWaitBeginsWithTheSession(t *testing.T) {
	l := newLab(t, 64)
	a, b := l.serving("A"), l.serving("B")
	l.serve(2 * labConfirm)
	waits := func(want bool) {
		t.Helper()
		a.peers()
		if got := a.co.AskAgainIn() > 0; got != want {
			t.Errorf("waits: %t", got)
		}
	}
	waits(false)
	b.sess.Expire() // no live lock says that B runs
	a.sess.Expire()
	a.mustBeat()
	waits(true)
	a.must(a.co.AskPeers(a.ctx()))
	if p := a.co.View().Peers; p.Session != a.sess.SessionID() || p.AskAgainIn != limits.DefaultHeartbeat/3 {
		t.Errorf("%+v", p)
	}
	b.mustBeat()
	waits(false)
	a.sess.Expire()
	a.mustBeat()
	waits(true)
	l.pass(labConfirm)
	a.mustBeat()
	waits(false) // B is silent
}

// A node reads at most mostRunning slots of holders at one heartbeat, and waits for all of them.
func TestManyPeersAreReadBitByBit(t *testing.T) {
	const peers = 3 * mostRunning
	l := newLab(t, 1024)
	a := l.serving("A")
	l.serve(2 * labConfirm)
	for i := range peers {
		l.put(i+1, Slot{Node: fmt.Sprint(i), Term: 1, Nonce: "n", LeaseUntil: 1 << 50, Followed: Followed{Takes: true}})
	}
	cl := l.cluster()
	cl.HighestSlot = peers
	a.must(func() error {
		_, err := l.admin.Set(l.Context(), clusterPath, cl.marshal(), store.AnyVersion)
		return err
	}())
	a.mustBeat()
	a.sess.Expire()
	a.mustBeat()
	read := 0
	a.hook = func(c memzk.Call) memzk.Fault {
		if c.Op == "get" && c.Path > SlotPath(0) && c.Path <= SlotPath(peers) {
			read++
		}
		return memzk.NoFault
	}
	a.must(a.co.AskPeers(t.Context()))
	if read != mostRunning || !(a.co.AskAgainIn() > 0) || a.h.mayLeaveToOthers() {
		t.Errorf("read %d, others take: %t", read, a.h.mayLeaveToOthers())
	}
	for i := range peers {
		l.put(i+1, Slot{Node: fmt.Sprint(i), Term: 1, Nonce: "n", LeaseUntil: 1 << 50})
	}
	for range 6 {
		a.must(a.co.AskPeers(t.Context()))
	}
	if a.co.AskAgainIn() > 0 {
		t.Error("waits for peers that have compared their records")
	}
}
