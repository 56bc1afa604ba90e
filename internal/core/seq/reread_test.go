package seq

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// readBefore puts ZooKeeper back to a copy in which a name is older. b has lost its witness file. It reads the name
// before a, which knows better, puts it back. Then a ends, before it has told anybody.
func (s *stage) readBefore(copied *memzk.Snapshot, name string, a, b *actor) {
	s.t.Helper()
	b.restart()
	s.lose(copied, 9)
	read := false
	a.calls = func(c memzk.Call) memzk.Fault {
		if !read && c.Op == "multi" && c.Touches(record.Path(name)) {
			b.is.issuer.series.findOrAdd(name).markStale(true) // a request asks for it
			_ = b.round()
			read = b.is.issuer.series.findOrAdd(name).Known != nil
		}
		return memzk.NoFault
	}
	for tries := 0; !read && tries < 10; tries++ {
		s.run(time.Second)
	}
	if !read {
		s.t.Fatalf("no node has read %s too early", name)
	}
	a.gone()
}

// deletedOr is a life of a name, and the next one. Without a name, that is none.
type deletedOr struct{ first, then operator.Definition }

func livesToPutBack() map[string]deletedOr {
	one := func(d operator.Definition) operator.Definition {
		d.Name, d.StartGiven, d.Settings = cmp.Or(d.Name, "n"), true, settings(1000)
		if d.Mode == record.Ordered {
			d.HoldMs = record.DefaultLease.Milliseconds()
		}
		return d
	}
	family := func(sections int) operator.Definition { return familyOf(sections, record.DefaultLease) }
	apart := scattered()
	apart.Start += 1 << apart.Scatter
	return map[string]deletedOr{
		"a sequence, deleted": {first: one(operator.Definition{Map: plain()})},
		"a template, deleted": {first: one(operator.Definition{Name: "t:*", Map: plain(), MaxNames: 9})},
		"a family, deleted":   {first: family(2)},
		"another mode":        {one(operator.Definition{Map: plain()}), one(operator.Definition{Map: plain(), Mode: record.Ordered})},
		"another salt":        {one(operator.Definition{Map: salted()}), one(operator.Definition{Map: salted()})},
		"another scatter":     {one(operator.Definition{Map: scattered()}), one(operator.Definition{Map: apart})},
		"strict again":        {one(operator.Definition{Map: plain(), Mode: record.Strict}), one(operator.Definition{Map: plain(), Mode: record.Strict})},
		"ordered again":       {one(operator.Definition{Map: plain(), Mode: record.Ordered}), one(operator.Definition{Map: plain(), Mode: record.Ordered})},
		"more sections":       {family(2), family(5)},
		"fewer sections":      {family(5), family(2)},
	}
}

// A node has read a record too early in a new incarnation. It reads it again when the others have put back what they
// know better, although nobody asks it: it may be the only one left at the next loss.
func TestNodeReadsWhatOthersPutBack(t *testing.T) {
	for title, row := range livesToPutBack() {
		s := newStage(t)
		a, b := s.node(), s.node()
		name := row.first.Name
		s.creates(row.first)
		s.run(15 * time.Second)
		copied := s.Mem.Snapshot()
		s.remove(name)
		if s.run(15 * time.Minute); row.then.Name != "" {
			s.creates(row.then)
			s.run(5 * time.Second)
		}
		s.readBefore(copied, name, a, b)
		s.run(2 * stageConfirm)
		for _, one := range a.is.issuer.series.list() {
			s.knows(b, title, one.Name, *one.Known)
		}
		s.Mem.Wipe()
		s.Mem.SetEpoch(10)
		s.run(2 * stageConfirm)
		for _, one := range a.is.issuer.series.list() {
			if r := s.view(one.Name).Record; r == nil || r.ID != one.Known.ID || r.Kind() != one.Known.Kind() {
				t.Errorf("%s: put back %+v of %s", title, r, one.Name)
			}
		}
	}
}

// knows fails the test unless the node knows this life of a name.
func (s *stage) knows(a *actor, title, name string, r record.Record) {
	s.t.Helper()
	one := a.is.issuer.series.find(name)
	if one == nil || one.Known == nil || one.Known.ID != r.ID || one.Known.Kind() != r.Kind() {
		s.t.Errorf("%s: the node knows %+v of %s, not %+v", title, one, name, r)
	}
}

// A node is told that another one still puts records back, after it has read all.
func TestNodeReadsAgainWhatIsPutBackLate(t *testing.T) {
	s, a := newOrder(t)
	a.noteLoss()
	s.run(2 * stageConfirm)
	v := s.view("order")
	late := v.Record.Deleted(*v.State, 1).Stamped("late", "another node")
	v.State.PutAt = new(v.State.Time)
	if err := s.Mem.Session().Multi(t.Context(), v.SetStateOps(*v.State)...); err != nil {
		t.Fatal(err)
	}
	s.run(5 * time.Second)
	s.write(record.Path("order"), late.Marshal())
	s.run(stageConfirm)
	s.knows(a, "put back late", "order", late)
}

// A node that alone knows of a deletion comes back when the confirming time of the others is over.
func TestNodesHearOfALatePutBack(t *testing.T) {
	s, a := newOrder(t)
	b := s.node()
	s.create("other", plain(), settings(1000))
	s.run(5 * time.Second)
	copied := s.Mem.Snapshot()
	s.remove("order")
	s.run(5 * time.Second)
	s.lose(copied, 9)
	a.store.Partition()
	b.restart()
	b.noteLoss()
	s.run(2 * stageConfirm)
	for k := range 5 { // so the changes that a has followed are no more than those that ZooKeeper has
		s.set("other", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs += int64(1 + k) }})
	}
	if one := b.is.issuer.series.find("order"); one == nil || one.Known.Kind() != record.Sequence {
		t.Fatalf("the node knows %+v", one)
	}
	a.store.Heal()
	s.run(10 * time.Second)
	s.knows(b, "put back late", "order", *a.is.issuer.series.find("order").Known)
	if k := s.view("order").Record.Kind(); k != record.Tombstone {
		t.Error("a has put back nothing")
	}
}

// newerFamily makes two nodes put back a family. b has read its first life, of two sections, before a has put back the
// second one, of five.
func (s *stage) newerFamily(a, b *actor) {
	s.creates(familyOf(2, record.DefaultLease))
	s.run(15 * time.Second)
	copied := s.Mem.Snapshot()
	s.remove("f:*")
	s.run(time.Minute)
	s.creates(familyOf(5, record.DefaultLease))
	s.run(5 * time.Second)
	s.readBefore(copied, "f:*", a, b)
}

// Two nodes are asked for the names of a family, one after the other, and both look for a name in the same section.
func TestFamilyIsAskedInItsPresentSections(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := nodes[0], nodes[1]
	s.newerFamily(a, b)
	s.run(2 * stageConfirm)
	s.nodes = append(s.nodes, a) // it was only slow
	for k := range 8 {
		c := s.contest(fmt.Sprintf("f:%d", k))
		c.run(time.Second, b)
		c.run(time.Second, a)
		if c.values[a] == 0 || c.values[b] == 0 {
			t.Errorf("%s: %v", c.name, c.values)
		}
	}
}

// A name waits for the section that had it in the earlier life. When that can be taken, the request finds the section
// that has it now, also if the confirming time ends in the middle of a round.
func TestFamilyIsReadBeforeItsSections(t *testing.T) {
	const name = "f:0"
	was, _ := positions.SectionAndLane(name, 2)
	want, _ := positions.SectionAndLane(name, 5)
	for _, inARound := range []bool{false, true} {
		s := newStage(t)
		a, b := s.node(), s.node()
		s.newerFamily(a, b)
		b.calls = func(c memzk.Call) memzk.Fault {
			// before, it would wait for the lease of an owner that it does not know (O8)
			if left := b.is.follower.roundIO().putBackLeft(); inARound && c.Touches(record.Path(record.SectionName("f:*", was))) && left > 0 &&
				left < 3*time.Second {
				s.now += left.Milliseconds() + 1
			}
			return memzk.NoFault
		}
		one := &eager{a: b, name: name}
		for end := s.now + 60_000; !one.done && s.now < end; s.now += 100 {
			one.again()
			_ = b.round()
		}
		if m := b.is.issuer.series.findOrAdd(record.SectionName("f:*", want)).owned(); !one.done || m == nil || was == want {
			t.Errorf("in a round %v: answered %v, not by section %d", inARound, one.done, want)
		}
	}
}

// eager is a request that is sent again as soon as the node wakes it, in the middle of a round.
type eager struct {
	a             *actor
	name          string
	waiting, done bool
}

func (e *eager) again() {
	if !e.waiting && !e.done {
		e.try(new(sequence.Wait))
	}
}

func (e *eager) try(w *sequence.Wait) {
	_, err := e.a.is.issuer.Take(w, []byte(e.name), 1, true, func() { e.try(w) }, nil)
	e.waiting, e.done = errors.Is(err, sequence.ErrPending), err == nil
}

// A round that fails after it has read /seq leaves the series that must be read to the next one, not to the next
// heartbeat.
func TestSeriesAreReadAfterARoundThatFailed(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 10, false).first()
	a.noteLoss()
	failed := false
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "children" && c.Path == record.BucketPath("order") && !failed {
			failed = true
			return memzk.FailBefore
		}
		return memzk.NoFault
	}
	for range 2 * stageConfirm / time.Second {
		s.now += 1000
		if err := a.round(); failed {
			if known := a.is.issuer.series.findOrAdd("order"); err == nil || !known.isStale() {
				t.Fatal("the round has not failed before it read the record", err)
			}
			break
		}
	}
	s.now += 100
	if err := a.round(); err != nil || !failed || a.is.issuer.series.findOrAdd("order").isStale() {
		t.Errorf("failed %v, then %v: the record is not read", failed, err)
	}
}
