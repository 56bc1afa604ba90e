package seq

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/internal/testkit/race"
)

// An operator raises the next value by more than the ceiling ever gives at once.
func TestOwnerFollowsARaisedNextValue(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	a.owner("ticks")
	s.setNext("ticks", 1_000_000_000)
	s.pass(4 * time.Second)
	if v := a.ask("ticks", 1, true).first(); v != 1_000_000_000 {
		t.Error(v)
	}
}

// A request comes after the end of the lease, while the renewal is under way that ZooKeeper acknowledges then.
func TestRenewalIsAcknowledgedAfterALapse(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	s.setNext("ticks", 1_000_000_000)
	s.pass(4 * time.Second)
	m := a.owner("ticks")
	late := true
	var c *call
	a.store.SetDone(func(memzk.Call, error, error) {
		if late && s.now*1e6 > sentAt(m)+0.9e9 {
			late = false
			s.now += 2000
			if c = a.ask("ticks", 1, true); c.done {
				t.Errorf("%v, %v", c.runs, c.err)
			}
		}
	})
	s.pass(2 * time.Second)
	if late {
		t.Fatal("there was no renewal")
	}
	if v := c.first(); v <= 1_000_000_000 {
		t.Error(v)
	}
}

// ZooKeeper acknowledges renewals so late that the next one is due already.
func TestSlowRenewals(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	a.store.SetDone(func(c memzk.Call, result, _ error) {
		if c.Touches(record.Path("ticks")) && c.Write() && result == nil {
			s.now += 1100
		}
	})
	c := s.contest("ticks")
	if c.run(30*time.Second, a); lapses(m) > 0 {
		t.Errorf("%d leases have ended", lapses(m))
	}
}

// The lease is longer than a request waits.
func TestRequestDoesNotWaitForALongLease(t *testing.T) {
	s, nodes := newTicks(t, record.MaxLease, 2)
	a, b := nodes[0], nodes[1]
	a.owner("ticks")
	c := s.contest("ticks")
	c.run(30*time.Second, b)
	if took := time.Duration(c.longest[b]) * time.Millisecond; took < mode.Patience || took > mode.Patience+time.Second {
		t.Errorf("a request has waited for %s", took)
	}
}

// The owner renews the record as an operator has changed it, not as it wrote it last.
func TestRenewalAfterAChange(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	a.store.SetDone(func(_ memzk.Call, result, _ error) {
		if result != nil && strings.Contains(result.Error(), "set "+record.Path("ticks")) {
			t.Error(result)
		}
	})
	c := s.contest("ticks")
	for range 5 {
		s.set("ticks", operator.Change{Settings: func(set *record.Settings) { set.Block++ }})
		a.is.follower.current = false
		_ = a.round()
		c.run(3400*time.Millisecond, a)
	}
	if lapses(m) > 0 {
		t.Errorf("%d leases have ended", lapses(m))
	}
}

// ZooKeeper has no room for the list of nodes.
func TestPlacementNeedsNoRoom(t *testing.T) {
	s := newStage(t)
	a := s.node()
	a.gone()
	b := &actor{stage: s, Machine: machineOf(s.Cluster, s.now), store: s.Mem.Session(), slot: "/workers/0007", address: "b:1"}
	b.pass = func(context.Context, ordered.PeerRequest) (ordered.Answer, error) {
		return ordered.Answer{}, ordered.ErrNothingIssued
	}
	b.restart()
	s.nodes = append(s.nodes, b)
	s.ordered("ticks", record.DefaultLease, 1000)
	s.create("order", plain(), settings(1000))
	b.store.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "create" || c.Op == "ensure root" {
			return memzk.FailQuota
		}
		return memzk.NoFault
	})
	s.run(5 * time.Second)
	for _, name := range []string{"order", "ticks"} {
		if v := b.ask(name, 1, true).first(); v != 1 {
			t.Error(name, v)
		}
	}
	s.setNext("order", 100)
	s.run(5 * time.Second)
	if f, st := b.is.issuer.Followed(), s.view("ticks").State; f.Last.Number < st.Changes {
		t.Errorf("the node has not followed change %d", st.Changes)
	}
}

// The session goes on, but ZooKeeper does not answer for longer than the lease. Nobody asks.
func TestLeaseEndsAlthoughNobodyAsks(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	a.store.SetDone(func(c memzk.Call, _, _ error) {
		if c.Op == "get" && s.now*1e6 > sentAt(m)+0.9e9 {
			a.store.SetDone(nil)
			s.now += 3000
		}
	})
	s.pass(6 * time.Second)
	if m.Owns() && s.now*1e6 >= m.LeaseUntil() {
		t.Error("the node is the owner, and its lease has ended")
	}
}

// The ceiling is reached when the owner wants more positions, although no request waits for them yet.
func TestLeaseIsRenewedAtTheCeiling(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	m := a.owner("ticks")
	s.pass(time.Duration(3000-s.now%3000) * time.Millisecond) // the next heartbeat comes after the end of the lease
	for s.view("ticks").Record.Credit >= 100 {
		a.ask("ticks", 100, true).first()
	}
	var u mode.Use
	m.Report(&u)
	a.ask("ticks", int(u.Held-1), true).first()
	if s.pass(2900 * time.Millisecond); lapses(m) > 0 || !m.Owns() || s.now*1e6 >= m.LeaseUntil() {
		t.Errorf("the lease has ended: %d lapses", lapses(m))
	}
}

// The node reads the records of many other sequences, because its session is a new one.
func TestLeaseIsRenewedWhileTheNodeIsBusy(t *testing.T) {
	names := 4000
	if race.Enabled { // one goroutine: the detector only costs time
		names = 400
	}
	for _, lease := range []time.Duration{record.MinLease, record.DefaultLease} {
		s := newStage(t)
		a := s.node()
		for k := range names {
			s.create(fmt.Sprintf("order%d", k), plain(), settings(1000))
		}
		s.ordered("ticks", lease, 1000)
		s.run(20 * time.Second)
		m := a.owner("ticks")
		a.calls = func(c memzk.Call) memzk.Fault {
			if !c.More {
				s.now++
			}
			return memzk.NoFault
		}
		a.store.Expire()
		reads := 0
		for began := s.now; s.now < began+20_000; s.now += 5 {
			if a.is.issuer.alarms.arm(a.is.issuer.now(), time.Hour) == 0 || a.is.agenda.unfinished || s.now%3000 < 10 {
				_ = a.round()
				reads++
			}
			a.ask("ticks", 1, true)
		}
		if lapses(m) > 0 {
			t.Errorf("%s: %d leases have ended", lease, lapses(m))
		}
	}
}

// An operator has changed one of the sequences that a node owns, and the node stops before it has followed.
func TestStoppedOwnerGivesAllSectionsBack(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	for k := range 3 {
		s.ordered(fmt.Sprint("ticks", k), record.DefaultLease, 1000)
	}
	s.pass(4 * time.Second)
	names := []string{"ticks", "ticks0", "ticks1", "ticks2"}
	for _, name := range names {
		a.owner(name)
	}
	s.set("ticks1", operator.Change{Settings: func(set *record.Settings) { set.Block++ }})
	if err := a.is.giveBack(context.Background()); err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if r := s.view(name).Record; r.Owner != "" || r.Next != 1 {
			t.Errorf("%s has the owner %q and goes on at %d", name, r.Owner, r.Next)
		}
	}
}

// The node may not write for a while. It must not have rounds without a pause until it may.
func TestNoRoundsWithoutAPause(t *testing.T) {
	for name, stop := range map[string]func(a *actor){
		"the worker is lost": func(a *actor) { a.fenced = true },
		"/seq is lost": func(a *actor) {
			a.Mem.Wipe()
			createCluster(a.Mem.Session(), 0)
			a.noteLoss()
			a.restart()
			a.is.issuer.alarms.wakeAt(a.is.issuer.series.findOrAdd("ticks"), mode.AtOnce)
		},
	} {
		s, nodes := newTicks(t, record.DefaultLease, 1)
		a := nodes[0]
		a.owner("ticks")
		stop(a)
		s.now += 2000
		_ = a.round()
		if a.is.issuer.alarms.arm(a.is.issuer.now(), time.Hour) == 0 {
			t.Errorf("%s: the next round follows at once", name)
		}
	}
}

// After a pause that other nodes' writes have caused, a round follows, also if another request has woken one meanwhile.
func TestPauseEndsWithARound(t *testing.T) {
	_, a := newOrder(t)
	order := a.is.issuer.series.findOrAdd("order")
	a.is.issuer.cfg.Retry = func(most time.Duration) time.Duration { return most }
	a.is.follower.roundIO().pauseUpTo(order, time.Second)
	for _, when := range []string{"at once", "after another request"} {
		if left := a.is.issuer.alarms.arm(a.is.issuer.now(), time.Hour); left != time.Second {
			t.Errorf("%s: the next round comes in %s", when, left)
		}
		a.is.issuer.alarms.wakeAt(order, mode.AtOnce)
		_ = a.round()
	}
}
