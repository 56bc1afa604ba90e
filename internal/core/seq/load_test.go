package seq

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

func TestUnknownNamesAreForgotten(t *testing.T) {
	s := newStage(t)
	a := s.node()
	for k := range 4000 {
		a.ask(fmt.Sprint("unknown", k), 1, false)
		if k%100 == 99 {
			s.run(time.Second)
		}
	}
	if n := len(a.is.issuer.series.list()); n > 1000 {
		t.Errorf("the node remembers %d unknown names", n)
	}
	s.create("unknown7", plain(), settings(1000))
	s.run(3 * time.Second)
	if v := a.ask("unknown7", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

func TestImpossibleRequestRefusesNoOther(t *testing.T) {
	for want, row := range map[record.Reason]struct{ most, ceiling int64 }{
		record.Exhausted: {300, 1000}, record.TooMany: {sequence.MaxJavaScript, 10}, // a burst of 100
	} {
		s := newStage(t)
		a := s.node()
		m := plain()
		m.Max = row.most
		s.create("order", m, settings(row.ceiling))
		large, small := a.ask("order", 400, true), a.ask("order", 1, false)
		_ = a.round()
		if v := small.first(); v != 1 {
			t.Error(v)
		}
		if r := large.reason(); r != want {
			t.Error(r)
		}
	}
}

// ZooKeeper is slow, and many sequences are asked for.
func TestRequestsAreWokenAlthoughZooKeeperIsSlow(t *testing.T) {
	s := newStage(t)
	a := s.node()
	var all []*call
	for k := range 90 {
		name := fmt.Sprintf("order%02d", k)
		s.create(name, plain(), settings(1000))
		all = append(all, a.ask(name, 1, false))
	}
	began := s.now
	a.calls = func(memzk.Call) memzk.Fault {
		s.now += 100
		for _, c := range all {
			if !c.woken && !c.done && s.now-began > 8000 {
				t.Fatalf("a request for %s waits after %d ms", c.name, s.now-began)
			}
		}
		return memzk.NoFault
	}
	for s.now-began < 20_000 {
		_ = a.round()
		for _, c := range all {
			c.again()
		}
		s.now += 100
	}
}

// A node that has started reads all records. A request that comes meanwhile does not wait for them.
func TestRequestsDoNotWaitForTheReadsAfterAStart(t *testing.T) {
	s, a, names := newMany(t, 200)
	last := names[len(names)-1]
	a.again(true)
	reads, answered := 0, 0
	var c *call
	a.calls = func(call memzk.Call) memzk.Fault {
		if call.Op != "get" || !strings.HasPrefix(call.Path, record.RecordsDir) {
			return memzk.NoFault
		}
		if reads++; reads == 1 {
			c = a.ask(last, 1, false)
		}
		c.again()
		_ = a.is.issuer.saveJournal()
		if c.again(); c.done && answered == 0 {
			answered = reads
		}
		return memzk.NoFault
	}
	s.run(time.Second)
	if answered == 0 || answered > 5 || c.first() < 2 || reads < len(names) {
		t.Errorf("answered after %d reads of %d: %v", answered, reads, c.runs)
	}
}

// A node that cannot take blocks yet, and is short of values, must not read all the time.
func TestShortStockDoesNotWakeAllTheTime(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 20, false).first()
	s.run(time.Second)
	a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: stageConfirm} }
	wakes := 0
	left := a.is.issuer.series.findOrAdd("order").segment().stock.Left()
	for range left - 2 {
		a.ask("order", 1, false)
		select {
		case <-a.is.issuer.alarms.woken:
			wakes++
		default:
		}
		_ = a.round()
	}
	if wakes > 5 {
		t.Errorf("%d requests wake the round %d times", left-2, wakes)
	}
}

// With a supply of a day, a node that issues 1,000 values a second can go on for a day without ZooKeeper. It has taken
// them before in many blocks, because the ceiling allows no block of a day.
func TestNodeIssuesForADayWithoutZooKeeper(t *testing.T) {
	const perSecond = 1000
	day := 24 * time.Hour
	if race.Enabled { // one goroutine: the detector only costs time
		day = 2 * time.Hour
	}
	s := newStage(t)
	a := s.newNode()
	a.openJournal(&memDir{})
	s.run(stageConfirm + time.Second)
	set := settings(1_000_000)
	set.SupplyMs, set.HoldMs = day.Milliseconds(), (day + time.Hour).Milliseconds()
	s.create("order", plain(), set)
	a.ask("order", 1, false).first()
	issue := func(d time.Duration) bool {
		var runs []worker.Run
		for end := s.now + d.Milliseconds(); s.now < end; s.now += 1000 {
			var w sequence.Wait
			var err error
			if runs, err = a.is.issuer.Take(&w, []byte("order"), perSecond, false, func() {}, runs[:0]); err != nil {
				return false
			}
			if a.calls == nil {
				_ = a.round()
			}
			_ = a.is.issuer.saveJournal()
		}
		return true
	}
	for range 20 { // the first blocks are small
		a.ask("order", perSecond, false).finish()
	}
	if !issue(10 * time.Minute) {
		t.Fatal("refused with ZooKeeper")
	}
	a.calls = func(memzk.Call) memzk.Fault { return memzk.FailBefore }
	if !issue(day) {
		t.Error("refused within a day")
	}
}

// The nodes of a sequence with a low ceiling do not take all of it to fill their stocks.
func TestFillingAStockLeavesTheOthersSome(t *testing.T) {
	s := newStage(t)
	var all []*actor
	for range 20 {
		all = append(all, s.newNode())
	}
	s.run(stageConfirm + time.Second)
	set := settings(1000)
	set.SupplyMs = (24 * time.Hour).Milliseconds()
	s.create("order", plain(), set)
	for range 60 {
		for _, a := range all[1:] {
			a.ask("order", 10, false).finish()
		}
		s.run(time.Second)
	}
	if c := all[0].ask("order", 3000, false).finish(); c.err != nil {
		t.Error(c.err)
	}
}

// Records that are due to be written again at one moment are written one after the other.
func TestRenewalsAreSpread(t *testing.T) {
	s := newStage(t)
	a := s.node()
	const names = 1000
	for k := range names {
		name := fmt.Sprint("order", k)
		s.create(name, plain(), settings(1000))
		a.ask(name, 1, false).first()
		s.now++
	}
	a.is.follower.losses.Known().Time += time.Hour.Milliseconds()
	a.is.agenda.unfinished = true
	if due := a.is.popDue(); len(due) != 750 { // of 1,000, at a heartbeat of 3 s
		t.Errorf("%d records are written again in one round", len(due))
	}
}

// A client that asks for more and more unknown names costs ZooKeeper little.
func TestUnknownNamesAreLookedUpSlowly(t *testing.T) {
	s := newStage(t)
	a := s.node()
	refused := 0
	for k := range 3 * maxLookups {
		var refusal *record.Refusal
		if c := a.ask(fmt.Sprint("x", k), 1, false); errors.As(c.err, &refusal) && refusal.Reason == record.TooManyNames {
			refused++
		}
	}
	if refused != 2*maxLookups {
		t.Errorf("%d names are refused unseen, not %d", refused, 2*maxLookups)
	}
}

// Clients ask for more than the ceiling allows all the time. They get what it allows, with few writes.
func TestFewWritesAtTheCeiling(t *testing.T) {
	for _, ceiling := range []int64{10, 1000} {
		s := newStage(t)
		a := s.node()
		s.create("order", plain(), settings(ceiling))
		if c := a.ask("order", int(10*ceiling), true).finish(); c.err != nil {
			t.Fatal(c.err)
		}
		writes, served := 0, 0
		a.calls = func(c memzk.Call) memzk.Fault {
			if c.Op == "multi" {
				writes++
			}
			return memzk.NoFault
		}
		c := &call{done: true, err: errForgotten}
		for end := s.now + 3000; s.now < end; s.now += 2 { // ZooKeeper takes 2 ms
			for range 50 {
				if c.again(); !c.done {
					break
				}
				if c.err == nil {
					served += c.n
				}
				c = a.ask("order", 1+int(ceiling/1000), false)
			}
			if !c.done {
				_ = a.round()
			}
		}
		if writes > 180 || served < int(2*ceiling) {
			t.Errorf("ceiling %d: %d writes and %d values in 3 s", ceiling, writes, served)
		}
	}
}
