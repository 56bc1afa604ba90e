package seq

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
)

// How a node goes on with what the process before held: Recall calls findJournal, the first round with a worker resume,
// and the mode gets the positions when the record is known.

// findJournal reads what the process before left in the journal, whose blocks must be compared with ZooKeeper's records
// (S35).
func (rs *Rounds) findJournal() {
	rs.issuer.journal.find()
	rs.issuer.publish(func(p *progress) { p.noteJournalLeft(len(rs.issuer.journal.found.held) > 0) })
}

// find reads what the process before left in the directory. A file that cannot be read is as good as none.
func (j *journal) find() {
	all, err := j.log.Read()
	if j.missing = errors.Is(err, fs.ErrNotExist); err != nil {
		return
	}
	if json.Unmarshal(all[""], &j.found.journalHead) != nil {
		j.found.journalHead = journalHead{}
	}
	delete(all, "")
	j.found.held = all
	j.count.Store(j.found.Count)
}

// resume goes on with what the process before held, when the node has resumed its worker (S31). Before that, nothing
// is known of what other processes did with a copy of the file. resume reports whether it dropped what the journal had.
func (rs *Rounds) resume(cluster ClusterInfo) (dropped bool) {
	j := rs.issuer.journal
	if j == nil {
		return false
	}
	j.mu.Lock()
	before := j.node
	j.mu.Unlock()
	if before == cluster.Self {
		return false
	}
	if before == "" {
		dropped = rs.adoptJournal(cluster)
	}
	j.mu.Lock()
	j.node = cluster.Self
	j.mu.Unlock()
	signal(j.woken) // the next process has this identity
	return dropped
}

// adoptJournal notes what the process before left in the journal, for the modes of its sequences, or drops it.
func (rs *Rounds) adoptJournal(cluster ClusterInfo) (dropped bool) {
	j := rs.issuer.journal
	found := j.found
	j.found = journalFound{}
	j.count.Store(max(found.Count, cluster.Journal))
	//mutant:s31-any-journal by TestJournalGoesOn -> goesOn := true
	goesOn := cluster.Resumed && found.Node == cluster.Self && found.Count >= cluster.Journal
	rs.issuer.publish(func(p *progress) { p.noteJournalLeft(goesOn && len(found.held) > 0) })
	if !goesOn {
		return found.Count > 0
	}
	// After a boot only the wall clock could count the hold, and it may have stood still while the machine was off.
	//mutant:s5-over-a-boot by TestHoldOverABoot -> sameBoot := true
	sameBoot := found.Boot != "" && found.Boot == rs.issuer.cfg.Boot
	if found.KnewAllAt != nil && sameBoot { // so the hold began in the last process (S5)
		at := rs.issuer.cfg.Elapsed.Rebase(found.At, true).Most - (found.At.Most - *found.KnewAllAt)
		rs.issuer.publish(func(p *progress) { p.resumeHold(at) })
	}
	for _, name := range slices.Sorted(maps.Keys(found.held)) {
		var h held
		if json.Unmarshal(found.held[name], &h) != nil {
			continue
		}
		s := rs.issuer.series.findOrAdd(name)
		rs.issuer.trace.Step("resumes", "name", name, "id", h.ID, "blocks", words(h.Blocks))
		s.Mu.Lock()
		s.resume(h)
		s.Mu.Unlock()
	}
	return false
}

// resume notes what an earlier process held of the sequence. It counts when the record is known.
func (s *series) resume(h held) {
	s.kept, s.journaled, s.Stale = &h, &h, true
	if s.Known != nil {
		s.restock()
	}
}

// restock gives the mode what an earlier process held, if that is of the present life of the name.
func (s *series) restock() {
	h := s.kept
	if h == nil {
		return
	}
	s.kept = nil
	s.journal.wake(s, false)
	//mutant:s32-another-life by TestJournalGoesOn -> if m := s.stocked(); m != nil {
	if m := s.stocked(); m != nil && s.Known.ID == h.ID {
		m.restock(*h)
		s.highest = max(s.highest, h.Last.End)
	}
}

func (s *segment) restock(h held) {
	s.lastBlock, s.lastIncarnation = h.Last, h.Incarnation
	s.unread = true
	for _, b := range h.Blocks {
		s.stock.Add(b)
	}
	s.stock.SkipTo(s.Known.RaisedTo) // the state directory may know what an operator has raised since
}
