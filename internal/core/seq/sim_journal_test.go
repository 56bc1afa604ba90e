package seq

import (
	"context"
	"encoding/json"
	"errors"
)

// openJournal returns the journal of a process on the directory of the node. Its disk fails sometimes.
func (n *simNode) openJournal() *journal {
	j := &journal{woken: make(chan struct{}, 1), blank: n.disk.journal == nil}
	is := func() *Issuer { return n.is }
	j.write = func(data []byte) error {
		if n.is.journal != j {
			n.h.violated("journal", "a process that has ended writes")
		}
		n.askWhileWriting(is())
		fails := n.h.rng.IntN(4*n.h.faulty) == 0
		if !fails || n.h.rng.IntN(2) == 0 {
			n.disk.journal = data
			n.disk.copies = append(n.disk.copies, data)
		}
		n.askWhileWriting(is())
		if fails {
			return errors.New("the disk fails")
		}
		return nil
	}
	j.remove = func() error {
		if n.h.rng.IntN(3) == 0 {
			return errors.New("the disk fails")
		}
		n.disk.journal = nil
		return nil
	}
	if n.disk.journal != nil {
		j.load(n.disk.journal)
	}
	return j
}

// askWhileWriting asks for values while the journal is being written.
func (n *simNode) askWhileWriting(is *Issuer) {
	if n.h.rng.IntN(4) != 0 || len(n.h.names) == 0 {
		return
	}
	name := n.h.names[n.h.rng.IntN(len(n.h.names))]
	late := &simLate{n: n, is: is, name: name, count: 1 + n.h.rng.IntN(20), before: n.h.highest[name]}
	if n.h.take(late) {
		n.h.late = append(n.h.late, late)
	}
}

// setBack puts the journal back to an earlier copy that the state file does not fit.
func (n *simNode) setBack() {
	if n.h.rng.IntN(4) != 0 || len(n.disk.copies) == 0 {
		return
	}
	var f journalFile
	old := n.disk.copies[n.h.rng.IntN(len(n.disk.copies))]
	if err := json.Unmarshal(old, &f); err == nil && f.Count < n.disk.count {
		n.h.note("the journal of node %d is put back to write %d", n.id, f.Count)
		n.disk.journal = old
	}
}

// stop ends the process cleanly.
func (n *simNode) stop() {
	n.leaves = n.h.rng.IntN(4) == 0
	n.busy = true
	err := n.is.giveBack(context.Background())
	n.busy = false
	n.disk.count = max(n.disk.count, n.is.JournalCount())
	n.h.note("node %d stops: %v", n.id, err)
}
