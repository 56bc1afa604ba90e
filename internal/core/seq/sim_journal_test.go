package seq

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/testkit/memdir"
)

// openJournal returns the journal of a process on the directory of the node. Its disk fails sometimes.
func (n *simNode) openJournal() *journal {
	d := &simProcessDir{Dir: n.openDir(), n: n}
	d.j = newJournal(d)
	return d.j
}

// simProcessDir is the directory of one process. It fails sometimes, and other things happen meanwhile.
type simProcessDir struct {
	entrylog.Dir
	n *simNode
	j *journal
}

func (d *simProcessDir) Replace(name string, write func(to io.WriterAt) error) error {
	return d.write(func() error { return d.Dir.Replace(name, write) }, nothing)
}

// Change writes a part, and not always the first one, if the process is killed or the disk fails. A head that is not
// synced may be lost with the power.
func (d *simProcessDir) Change(name string, sync bool, write func(to io.WriterAt) error) error {
	if !sync {
		if d.n.h.rng.IntN(3) == 0 {
			return nil
		}
		return d.Dir.Change(name, sync, write)
	}
	data, at, err := memdir.Collect(write)
	if err != nil {
		return err
	}
	return d.write(func() error { return d.Dir.Change(name, sync, memdir.One(data, at)) }, func() {
		from, end := 0, d.n.h.rng.IntN(len(data)+1)
		if d.n.h.rng.IntN(3) == 0 { // a later page is there, and an earlier one is not
			from = d.n.h.rng.IntN(end + 1)
		}
		_ = d.Dir.Change(name, sync, memdir.One(data[from:end], at+int64(from)))
	})
}

func nothing() {}

// write makes a write of the journal. tear leaves what may be there of one that fails.
func (d *simProcessDir) write(do func() error, tear func()) error {
	n := d.n
	if n.is.issuer.journal != d.j {
		n.h.violated("journal", "a process that has ended writes")
	}
	if n.goOnWhileWriting(tear); n.is.issuer.journal != d.j {
		return errKilled
	}
	fails := n.h.rng.IntN(4*n.h.faulty) == 0
	if fails && n.h.rng.IntN(2) == 0 {
		tear()
	} else if err := do(); err != nil {
		return err
	} else {
		n.disk.copies = append(n.disk.copies, n.disk.journal())
	}
	if n.goOnWhileWriting(nothing); n.is.issuer.journal != d.j {
		return errKilled
	}
	if fails {
		return errors.New("the disk fails")
	}
	return nil
}

func (d *simProcessDir) Remove(name string) error {
	if d.n.is.issuer.journal != d.j {
		return errKilled
	}
	if d.n.h.rng.IntN(3) == 0 {
		return errors.New("the disk fails")
	}
	return d.Dir.Remove(name)
}

var errKilled = errors.New("the process was killed")

// saveJournal writes the journal if a sequence has asked for that, as keepJournal does.
func (n *simNode) saveJournal() {
	j := n.is.issuer.journal
	if n.journaling || len(j.woken) == 0 && !n.dueAgain && n.h.rng.IntN(20) != 0 {
		return
	}
	select {
	case <-j.woken:
	default:
	}
	n.journaling = true
	if again := n.is.issuer.saveJournal(); n.is.issuer.journal == j {
		n.dueAgain, n.journaling = again, false
	}
}

// goOnWhileWriting lets other things happen while the journal is being written: requests, a round, a kill, or another
// worker. tear leaves what a kill may leave of the write.
func (n *simNode) goOnWhileWriting(tear func()) {
	is := n.is
	n.askWhileWriting(is)
	h := n.h
	if n.busy || h.inside || h.now < n.pauseTill {
		return
	}
	switch h.rng.IntN(12) {
	case 0, 1:
		n.busy = true
		_ = is.Round(context.Background())
		n.busy = false
	case 2:
		if h.rng.IntN(4) == 0 && !h.staged && !h.mustNotice(n) {
			h.note("node %d is killed while it writes the journal", n.id)
			tear()
			n.start(true)
		}
	}
	n.askWhileWriting(n.is)
}

// fenced gives the process another identity and another worker. What it holds stays.
func (n *simNode) fenced() {
	n.h.identities++
	n.disk.self, n.resumed = fmt.Sprint(n.id, "-", n.h.identities), false
	n.h.note("node %d is fenced, and registers as %s", n.id, n.disk.self)
}

// askWhileWriting asks for values while the journal is being written.
func (n *simNode) askWhileWriting(is *Rounds) {
	if n.h.rng.IntN(4) != 0 || len(n.h.names) == 0 {
		return
	}
	name := n.h.names[n.h.rng.IntN(len(n.h.names))]
	late := &simLate{n: n, is: is, name: name, count: 1 + n.h.rng.IntN(20), before: n.h.highest[name]}
	if n.h.take(late) {
		n.h.late = append(n.h.late, late)
	}
}

// journalIn returns the content of a journal.
func journalIn(data []byte) journalFound {
	j := newJournal(&memDir{Files: map[string][]byte{journalName: data}})
	j.find()
	return j.found
}

// setBack puts the journal back to an earlier copy that the state file does not fit.
func (n *simNode) setBack() {
	if n.h.rng.IntN(4) != 0 || len(n.disk.copies) == 0 {
		return
	}
	old := n.disk.copies[n.h.rng.IntN(len(n.disk.copies))]
	if f := journalIn(old); f.Count < n.disk.count {
		n.h.note("the journal of node %d is put back to write %d", n.id, f.Count)
		n.disk.put(old)
	}
}

// stop ends the process cleanly.
func (n *simNode) stop() {
	n.leaves = n.h.rng.IntN(4) == 0
	n.busy = true
	err := n.is.giveBack(context.Background())
	n.busy = false
	n.disk.count = max(n.disk.count, n.is.issuer.JournalCount())
	n.h.note("node %d stops: %v", n.id, err)
}

// goOnAlone: a node without ZooKeeper is killed again and again, and issues what its journal has to the end.
func (h *history) goOnAlone() {
	h.calm()
	name, n := h.names[h.rng.IntN(len(h.names))], h.nodes[h.rng.IntN(len(h.nodes))]
	h.ask(n, name, 1+h.rng.IntN(40), false)
	h.run(h.rng.Int64N(3000))
	n.cut = true
	n.store.Partition()
	for range 4 + h.rng.IntN(8) {
		n.start(true)
		n.cut = true
		n.store.Partition()
		n.round()
		if s := n.is.issuer.series.byName[name]; s != nil && s.stocked() != nil {
			left := int(min(s.stocked().stock.Left(), 3000))
			h.ask(n, name, max(1, []int{h.rng.IntN(left + 1), left - h.rng.IntN(3), 1}[h.rng.IntN(3)]),
				h.rng.IntN(2) == 0)
		}
		h.run(h.rng.Int64N(1500))
	}
	n.cut = false
	n.store.Heal()
}
