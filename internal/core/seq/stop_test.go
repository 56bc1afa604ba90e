package seq

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// newMany returns a stage with a node that has a journal, and so many sequences in use.
func newMany(t *testing.T, n int) (s *stage, a *actor, names []string) {
	s, a = newJournaled(t)
	for k := range n {
		names = append(names, fmt.Sprint("name", k))
		s.create(names[k], plain(), settings(1000))
		a.ask(names[k], 1, false).first()
	}
	s.run(5 * time.Second)
	return s, a, names
}

// lacking returns the names of which positions are missing: the node does not have them, and ZooKeeper does not give
// them. kept is the number of names of which the node holds more than a stop leaves.
func lacking(s *stage, a *actor, names []string) (lacks []string, kept int) {
	for _, name := range names {
		a.ask(name, 1, false).first()
		if stock := &a.segmentOf(name).stock; stock.Tail().End != s.view(name).Record.Next {
			lacks = append(lacks, name)
		} else if stock.Left() > keepValues {
			kept++
		}
	}
	return lacks, kept
}

// A node gives the leftovers of many sequences back in few transactions. Somebody raises a next value meanwhile, so
// that each of them is made a second time, without that sequence.
func TestStopGivesRestsBackTogether(t *testing.T) {
	s, a, names := newMany(t, 2*returnsInOne+50)
	writes, raised := 0, names[returnsInOne/2]
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" {
			if writes++; writes == 1 {
				s.setNext(raised, 500)
			}
		}
		return memzk.NoFault
	}
	if err := a.is.giveBack(context.Background()); err != nil || writes != 2*3 {
		t.Errorf("%d transactions, %v", writes, err)
	}
	a.again(true)
	if lacks, kept := lacking(s, a, names); len(lacks) > 0 || kept > 1 {
		t.Errorf("positions of %v are missing, and %d leftovers were not given back", lacks, kept)
	}
	if got := a.ask(raised, 1, false).first(); got <= 500 {
		t.Errorf("%s goes on with %d", raised, got)
	}
}

// What a node has dropped, after a rival say, is not in its journal any more when the first leftovers go back (S12):
// neither if it holds nothing of that sequence now, nor if it has taken a block that is too small to go back.
func TestFirstWriteOfAStopRemovesWhatWasDropped(t *testing.T) {
	s, a, names := newMany(t, 3)
	s.create("little", plain(), settings(4))
	a.ask("little", 1, false).first()
	s.run(time.Second)
	entry := func(name string) string { return fmt.Sprint(journalIn(a.dir.Files[journalName]).held[name]) }
	drop := func(name string) { a.is.issuer.series.byName[name].change(a.segmentOf(name).Drop) }
	drop(names[0])
	drop("little")
	little := a.ask("little", 1, false)
	_ = a.is.Round(context.Background())
	little.again()
	none, kept, old := entry("none"), entry(names[1]), entry("little")
	if entry(names[0]) == none || kept == none || old == none || a.segmentOf("little").stock.Left() == 0 {
		t.Fatal(entry(names[0]), kept, old)
	}
	writes := 0
	a.calls = func(c memzk.Call) memzk.Fault {
		if c.Op == "multi" {
			writes++
			if entry(names[0]) != none || entry(names[1]) == none || entry("little") == old {
				t.Errorf("dropped: %s, kept: %s, replaced: %s", entry(names[0]), entry(names[1]), entry("little"))
			}
		}
		return memzk.NoFault
	}
	if err := a.is.giveBack(context.Background()); err != nil || writes == 0 {
		t.Errorf("%d transactions, %v", writes, err)
	}
}

// The time is over after the first of many transactions. The journal keeps the leftovers of the others.
func TestStopKeepsTheRestsForWhichItHasNoTime(t *testing.T) {
	s, a, names := newMany(t, 2*returnsInOne+50)
	ctx, cancel := context.WithCancel(context.Background())
	a.store.SetDone(func(c memzk.Call, _, _ error) {
		if c.Op == "multi" {
			cancel()
		}
	})
	err := a.is.giveBack(ctx)
	a.store.SetDone(nil)
	a.again(true)
	if lacks, kept := lacking(s, a, names); len(lacks) > 0 || kept < returnsInOne || err == nil {
		t.Errorf("positions of %v are missing, and %d leftovers were not given back: %v", lacks, kept, err)
	}
}

// stuckDir is a state directory of which all writes hang until goOn is closed. running is their number, and most the
// most at one time.
type stuckDir struct {
	memDir
	goOn          chan struct{}
	running, most atomic.Int32
}

func (d *stuckDir) hang() {
	d.most.Store(max(d.most.Load(), d.running.Add(1)))
	<-d.goOn
	d.running.Add(-1)
}

func (d *stuckDir) Replace(name string, write func(to io.WriterAt) error) error {
	d.hang()
	return d.memDir.Replace(name, write)
}

func (d *stuckDir) Change(name string, sync bool, write func(to io.WriterAt) error) error {
	d.hang()
	return d.memDir.Change(name, sync, write)
}

// The disk hangs from when a node that stops takes out of its journal what it gives back. It waits once, and begins no
// other write of the journal beside that one.
func TestStopOnADiskThatHangsWritesTheJournalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _ := newMany(t, 3)
		dir := &stuckDir{goOn: make(chan struct{}), memDir: memDir{Files: maps.Clone(a.dir.Files)}}
		a.is.issuer.journal.log = entrylog.New(dir, journalName)
		began := time.Now()
		err := a.is.giveBack(context.Background())
		if took := time.Since(began); took != limits.Round || err == nil {
			t.Errorf("it takes %s: %v", took, err)
		}
		close(dir.goOn)
		a.is.Wait()
		if n := dir.most.Load(); n != 1 {
			t.Errorf("%d writes at once", n)
		}
	})
}
