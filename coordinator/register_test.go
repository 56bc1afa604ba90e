package coordinator

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

func TestFull(t *testing.T) {
	l := newLab(t, 5)
	var ms []*member
	for i := range 5 {
		ms = append(ms, l.serving(fmt.Sprint("N", i)))
	}
	ms[1].crash()
	ms[2].must(ms[2].halt())
	s := l.slot(3)
	s.Released, s.LeaseUntil = true, l.now+20_000
	l.put(3, s)
	l.remove(lockPath(3))
	l.expire()
	before := l.children(ticketsPath)
	m := l.node("M")
	m.hook = func(c memzk.Call) memzk.Fault {
		if c.Write() {
			t.Errorf("%s %s", c.Op, c.Path)
		}
		return memzk.NoFault
	}
	full := wantErrAs[*FullError](t, m.register())
	if full.Slots != 5 || full.Live != 2 || full.Disconnected != 1 || full.Stopped != 1 || full.Releasing != 1 ||
		full.NextFree != l.now+10_000 {
		t.Errorf("%+v: %v", full, full)
	}
	if after := l.children(ticketsPath); len(after) != len(before) || m.disk.saves > 0 {
		t.Errorf("tickets %q, saves %d", after, m.disk.saves)
	}
}

func TestLostSlotIsKeptForItsHolder(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	l.remove(SlotPath(0))
	b := l.serving("B")
	c := l.node("C")
	full := wantErrAs[*FullError](t, c.register())
	s := l.slot(0)
	if b.claim.Worker != 1 || !s.StandsIn || s.Term != 0 || s.LeaseUntil != l.cluster().FreezeEnd(l.now) ||
		full.Live+full.Disconnected != 2 {
		t.Errorf("B has %d, slot %+v, %v", b.claim.Worker, s, full)
	}
	a.must(func() error { _, err := a.beat(); return err }()) // A overwrites the record
	if s := l.slot(0); s.Node != a.claim.Node || s.StandsIn {
		t.Errorf("slot %+v", s)
	}
	l.disjoint()
}

// If a node cannot save a claim, it does not write its slot to ZooKeeper.
func TestNothingIsWrittenThatIsNotStored(t *testing.T) {
	l := newLab(t, 2)
	a := l.node("A")
	a.disk.err = errors.New("disk full")
	if err := a.register(); !errors.Is(err, a.disk.err) {
		t.Fatal(err)
	}
	if s := l.slot(0); s.Term != 0 || !s.Released || len(l.children(ticketsPath)) != 0 {
		t.Errorf("%+v, %q", s, l.children(ticketsPath))
	}
	a.disk.err = nil
	a.must(a.register())
	a.confirm()
	was := l.slot(0)
	claim := a.disk.claim
	a.crash()
	a.disk.err = errors.New("disk full")
	if err := a.resume(); !errors.Is(err, a.disk.err) || !same(l.slot(0), was) {
		t.Fatalf("%v, %+v", err, l.slot(0))
	}
	a.disk.claim = claim
	a.startAlone()
	if _, err := a.beat(); !errors.Is(err, a.disk.err) || !same(l.slot(0), was) {
		t.Fatalf("%v, %+v", err, l.slot(0))
	}
	a.h.stage = Confirming
	l.remove(SlotPath(0))
	if _, err := a.beat(); !errors.Is(err, a.disk.err) {
		t.Fatal(err)
	}
	if _, _, err := l.admin.Get(t.Context(), SlotPath(0)); !errors.Is(err, store.ErrNoNode) {
		t.Error("a slot was put back with a nonce that is nowhere stored")
	}
}

// Register resets what a claim says of another slot.
func TestRegisterBeginsAnew(t *testing.T) {
	l := newLab(t, 4)
	a := l.node("A")
	a.claim = Claim{
		Owner: Owner{"a", 3}, Term: 9, Nonce: "old", PendingTerm: 10, PendingNonce: "older", EverConfirmed: true,
		Floor: 1, LeaseUntil: l.now + millis(labW), ReservedUntil: 2, Generation: 7,
	}
	a.must(a.register())
	c := a.claim
	if c.Node != "a" || c.Worker != 0 || c.Term != 1 || c.Nonce != "A/1" || c.PendingNonce != "" || c.EverConfirmed ||
		c.Floor != l.now || c.LeaseUntil != 0 || c.ReservedUntil != l.now || c.Generation != 1 {
		t.Errorf("%+v", c)
	}
	for i, want := range []string{"A/2", "A/3"} { // a new nonce for each start
		a.crash()
		a.must(a.resume())
		if a.claim.Nonce != want || a.claim.Term != int64(2+i) {
			t.Errorf("%+v, want nonce %s", a.claim, want)
		}
	}
}

// A node that may not change its worker keeps the ticket of the slot that it holds, and no other one.
func TestRefusedChangeOfWorkerKeepsTheTicket(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	refused := errors.New("the clock is wrong")
	for _, lost := range []bool{false, true} {
		want := []string{path.Base(a.claim.Ticket)}
		if lost { // the node draws a new one
			l.remove(a.claim.Ticket)
			want = nil
		}
		check := func(Reading, []Reading) error { return refused }
		_, _, err := a.co.Register(t.Context(), l.cluster(), labLease, check)
		if !errors.Is(err, refused) || a.co.Claim() != a.claim {
			t.Fatalf("lost %t: %v, %+v", lost, err, a.co.Claim())
		}
		if got := l.children(ticketsPath); !slices.Equal(got, want) {
			t.Errorf("lost %t: tickets %q, want %q", lost, got, want)
		}
	}
}

// Records disappear while a node acquires a slot. If Register fails, it leaves no ticket.
func TestRecordsVanishWhileTaking(t *testing.T) {
	for name, tc := range map[string]struct {
		gone []string
		err  error
	}{
		"the slot":        {[]string{SlotPath(0)}, nil},
		"all slots":       {[]string{SlotPath(0), SlotPath(1), workersPath}, nil},
		"the cluster":     {[]string{clusterPath}, ErrNoCluster},
		"tickets":         {[]string{ticketsPath + "/n-0000000000", ticketsPath}, nil},
		"all that counts": {[]string{SlotPath(0), SlotPath(1), workersPath, clusterPath}, ErrNoCluster},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.node("A")
			raced := false
			a.hook = func(c memzk.Call) memzk.Fault {
				if c.Op == "multi" && len(c.Ops) == 2 && !raced {
					raced = true
					for _, p := range tc.gone {
						l.remove(p)
					}
				}
				return memzk.NoFault
			}
			err := a.register()
			var full *FullError
			if tc.err != nil && !errors.Is(err, tc.err) || tc.err == nil && err != nil && !errors.As(err, &full) {
				t.Fatal(err)
			}
			if err != nil && len(l.children(ticketsPath)) > 0 {
				t.Errorf("tickets %q after %v", l.children(ticketsPath), err)
			}
		})
	}
}

// A ticket's number only decides where the search for a slot begins. Any number leads to a free slot.
func TestAnyTicketNumberFindsAFreeSlot(t *testing.T) {
	for name, tc := range map[string]struct {
		count int32
		want  []int
	}{
		"1,100 tickets":          {1100, []int{76, 77, 78}},
		"the parent made again":  {0, []int{1, 2, 3}}, // 0 is held
		"near the counter's end": {math.MaxInt32 - 1, []int{1022, -1, -1}},
		"negative":               {math.MinInt32, []int{1, 2, 3}},
		"negative and short":     {-3, []int{1021, 1022, 1023}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1024)
			l.remove(l.serving("X").claim.Ticket)
			if err := l.Mem.SetCreateCount(ticketsPath, tc.count); err != nil {
				t.Fatal(err)
			}
			taken := map[int]bool{0: true}
			for i, want := range tc.want {
				m := l.node(fmt.Sprint("N", i))
				m.must(m.register())
				if got := m.claim.Worker; got != want && want >= 0 || taken[got] {
					t.Errorf("node %d has worker %d by ticket %s, want %d", i, got, m.claim.Ticket, want)
				}
				taken[m.claim.Worker] = true
			}
		})
	}
}

// A holder freezes registration after a new node has acquired a slot. The new node does not confirm it.
func TestFreezeWhileConfirming(t *testing.T) {
	for name, atOnce := range map[string]bool{"before the heartbeat": false, "within it": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2)
			a := l.serving("A")
			m := l.node("M")
			m.must(m.register())
			l.pass(labConfirm)
			freeze := func() {
				l.remove(SlotPath(0))
				a.mustBeat()
			}
			raced := !atOnce
			if !atOnce {
				freeze()
			}
			m.hook = func(c memzk.Call) memzk.Fault {
				if c.Op == "multi" && !raced {
					raced = true
					freeze()
				}
				return memzk.NoFault
			}
			// M gives the slot up, rather than wait until the freeze ends.
			_, err := m.beat()
			wantFenced(t, err)
			if m.issue() || l.slot(1).Confirmed {
				t.Error("confirmed in a freeze")
			}
			l.disjoint()
		})
	}
}

// A holder freezes registration while a new node acquires a slot, the holder's or another one. The new node does not
// get it.
func TestFreezeWhileTaking(t *testing.T) {
	for name, slots := range map[string]int{"its holder": 1, "another slot's": 2} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, slots)
			b := l.serving("B")
			lost := slots - 1
			l.put(lost, Slot{Released: true, Node: "old", Nonce: "old", Term: 1, LeaseUntil: l.now}) // an older copy
			if lost != 0 {
				l.remove(SlotPath(0))
			}
			l.forget()
			was := l.slot(lost)
			m := l.node("M")
			raced := false
			m.hook = func(c memzk.Call) memzk.Fault {
				if c.Op == "multi" && !raced {
					raced = true
					b.mustBeat()
				}
				return memzk.NoFault
			}
			l.remove(lockPath(0))
			f := wantErrAs[*FrozenError](t, m.register())
			if !raced || f.Until == 0 || l.slot(0).Node != b.claim.Node || len(l.children(ticketsPath)) != 1 {
				t.Errorf("%+v, %+v, %q", f, l.slot(0), l.children(ticketsPath))
			}
			if lost != 0 && !same(l.slot(lost), was) {
				t.Errorf("taken: %+v", l.slot(lost))
			}
			l.disjoint()
		})
	}
}

func TestTicketNumber(t *testing.T) {
	for name, want := range map[string]int64{
		"/tickets/n-0000000007": 7,
		"n-0000000000":          0,
		"n-2147483647":          math.MaxInt32,
		"n--2147483648":         math.MinInt32,
		"n--1000000000":         -1_000_000_000,
		"n--999999999":          -999_999_999,
		"n--000000001":          -1,
		"a-b-c-0000000012":      12,
		"a-b--2147483648":       math.MinInt32,
		"a--b-0000000012":       12,
		"7-0000000012":          12,
		"/a-1/b-2/n-0000000003": 3,
		"node-10-0000000010":    10,
	} {
		if got, err := ticketNumber(name); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{
		"", "/", "n", "n-", "n--", "n-1", "n-000000001", "n-00000000001", "0000000001", "n-000000000a", "n-0000000001x",
		"n--1", "n--00000000001", "n-٠٠٠٠٠٠٠٠٠٠", "under_score0x000000001",
	} {
		if got, err := ticketNumber(name); err == nil {
			t.Errorf("%q is ticket %d", name, got)
		}
	}
}

func TestFirstSlot(t *testing.T) {
	for _, tc := range []struct {
		ticket int64
		slots  int
		want   int
	}{
		{0, 1024, 0}, {1023, 1024, 1023}, {1024, 1024, 0}, {1100, 1024, 76}, {5, 1, 0},
		{-1, 1024, 1023}, {-1024, 1024, 0}, {math.MinInt32, 1024, 0}, {math.MinInt32, 3, 1}, {math.MaxInt32, 1 << 24,
			1<<24 - 1},
	} {
		if got := firstSlot(tc.ticket, tc.slots); got != tc.want {
			t.Errorf("%d of %d: %d, want %d", tc.ticket, tc.slots, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 1<<24).Draw(t, "slots")
		ticket := rapid.Int64Range(math.MinInt32, math.MaxInt32).Draw(t, "ticket")
		got := firstSlot(ticket, slots)
		if got < 0 || got >= slots || (ticket-int64(got))%int64(slots) != 0 {
			t.Fatalf("%d", got)
		}
		if next := firstSlot(ticket+1, slots); next != (got+1)%slots {
			t.Fatalf("%d follows %d", next, got)
		}
	})
}

// A cluster of many slots grows in requests that are small enough for a server.
func TestGrowsInSteps(t *testing.T) {
	l := newLab(t, 1<<16)
	if err := l.Mem.SetCreateCount(ticketsPath, 1<<15); err != nil {
		t.Fatal(err)
	}
	a := l.node("A")
	a.sess.SetFault(func(c memzk.Call) memzk.Fault {
		if len(c.Ops) > 2000 {
			t.Errorf("%d operations at once", len(c.Ops))
		}
		return memzk.NoFault
	})
	a.co.Recall(Claim{Owner: Owner{Node: "a"}})
	_, _, err := a.co.Register(t.Context(), l.cluster(), labLease, a.trust)
	if err != nil || a.co.Claim().Worker != 1<<15 {
		t.Errorf("%+v, %v", a.co.Claim(), err)
	}
}

// /cluster was recreated while slots exist. When the cluster grows, it keeps their records.
func TestGrowsOverRecordsThatAreThere(t *testing.T) {
	l := newLab(t, 12)
	a := l.serving("A")
	b := l.serving("B")
	b.must(b.leave())
	l.remove(SlotPath(2))
	was := l.slot(0)
	l.remove(clusterPath)
	l.cl.UUID = "anew"
	l.init(l.cl)
	taken := map[int]bool{0: true}
	for range 4 {
		m := l.serving("N")
		if taken[m.claim.Worker] {
			t.Errorf("worker %d twice", m.claim.Worker)
		}
		taken[m.claim.Worker] = true
	}
	if s := l.slot(0); !same(s, was) || !taken[2] {
		t.Errorf("slot 0 %+v, taken %v", s, taken)
	}
	_, err := a.beat() // the others have confirmed
	wantFenced(t, err)
	l.disjoint()
}
