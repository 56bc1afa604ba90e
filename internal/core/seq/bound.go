package seq

import (
	"bytes"
	"context"
	"math"
	"time"
)

// This file moves the bounds of the stocks, and writes the journal. See journal.go.

// least is the number of positions below a bound for a sequence that is hardly used: so many are lost at kill -9. A
// node that holds blocks of many sequences writes its journal less often for each of them.
func least(holds int) int64 { return 2 + int64(holds)/1000 }

// planned is a bound that counts when the journal has been written.
type planned struct {
	s     *series
	m     *segment
	bound int64
}

// saveJournal writes the journal if a bound must move. again: it should be called again in a second. Only one goroutine
// may call it.
func (i *Issuer) saveJournal() (again bool) {
	j := i.journal
	j.mu.Lock()
	begun, node := j.begun, j.node
	j.mu.Unlock()
	if !begun || node == "" {
		return false
	}
	read := i.read.Load() // first: a later change may drop what the plan has
	all, bounds, again := i.planBounds()
	err := i.writeJournal(all, node, read)
	failed := j.failed
	if j.failed = err != nil; err != nil {
		if again = true; !failed {
			i.cfg.Log.Warn("sequences: could not write the journal: a restart will skip the values that this node "+
				"holds",
				"error", err)
		}
		if err := j.remove(); err != nil { // as it is, it has positions that are about to be issued (S30)
			i.cfg.Log.Error("sequences: could not remove the journal either, so this node issues nothing more of "+
				"what it holds", "error", err)
			return true
		}
	}
	for _, p := range bounds {
		if err != nil { // the file is gone, so no later process finds what is issued now
			p.bound = math.MaxInt64
		}
		p.s.change(func() {
			if p.s.mode == p.m { // else the name has another life
				p.m.traceBound(p.bound)
				p.m.stock.SetBound(p.bound)
			}
		})
	}
	return again
}

// planBounds returns what the journal must have, and the bounds that count then.
func (i *Issuer) planBounds() (all []held, bounds []planned, again bool) {
	now, few := i.now(), least(i.journal.holds)
	for _, s := range i.list() {
		s.mu.Lock()
		if s.kept != nil {
			all = append(all, *s.kept)
		} else if m := s.stocked(); m != nil {
			bound, busy := m.planBound(now, few)
			again = again || busy
			if h, ok := m.held(bound); ok {
				all = append(all, h)
			}
			if bound != m.stock.Bound() || m.waitsForDisk() {
				//mutant:s30-before-the-disk by seqsim -> m.stock.SetBound(bound)
				bounds = append(bounds, planned{s, m, bound})
			}
		}
		s.mu.Unlock()
	}
	i.journal.holds = len(all)
	return all, bounds, again
}

// writeJournal writes the file, unless it has the same already. read is when the node last knew all changes: without
// ZooKeeper the hold counts from then, so that is never much older.
func (i *Issuer) writeJournal(all []held, node string, read int64) error {
	j := i.journal
	what := mustMarshal(all)
	unchanged := bytes.Equal(what, j.held) && node == j.heldBy &&
		(len(all) == 0 || read-j.read.Load() < int64(saveEvery))
	if unchanged || len(all) == 0 && j.blank {
		return nil
	}
	j.held, j.blank = nil, false
	f := journalFile{
		Count: j.count.Load() + 1, Node: node, At: i.cfg.Elapsed.Now(), Boot: i.cfg.Boot, Read: read, Held: what,
	}
	if err := j.write(mustMarshal(f)); err != nil {
		return err
	}
	j.held, j.heldBy = what, node
	j.count.Store(f.Count)
	j.read.Store(read)
	return nil
}

// keepJournal writes the journal when a sequence needs it, until the context ends.
func (i *Issuer) keepJournal(ctx context.Context) {
	var second <-chan time.Time // when saveJournal asked to be called again. A call before does not put it off
	for ctx.Err() == nil {
		if i.saveJournal() && second == nil {
			second = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
		case <-i.journal.woken:
		case <-second:
			second = nil
		}
	}
}

// planBound returns the bound that should count next, and lowers the present one if it should be lower. It lies above
// what the requests that wait need, and what the node issues in a second, or few. A lower bound counts at once. busy:
// the bound should go down when the sequence has been quiet for a second.
func (s *segment) planBound(now, few int64) (bound int64, busy bool) {
	second := s.pace.second(s.issued, now)
	margin := max(few, second+second/4)
	s.wakeBelow = margin / 5
	bound = s.stock.Bound()
	need := s.needs().all
	if next := s.boundFor(need, margin); next > bound && (need > 0 || s.stock.Free() <= s.wakeBelow) {
		bound = next
	} else if s.stock.Free() > margin+margin/2 && need == 0 {
		bound = s.stock.After(margin)
		s.traceBound(bound)
		//mutant:s30-lowered-on-the-disk-first by seqsim ->
		s.stock.SetBound(bound)
	}
	return bound, margin > few
}

// boundFor returns a bound below which requests for need positions find theirs, and margin more.
func (s *segment) boundFor(need, margin int64) int64 {
	bound := s.stock.After(need + margin)
	for _, r := range s.waiting {
		if r.whole { // the blocks before may be too short
			bound = max(bound, s.stock.AfterWhole(r.n))
		}
	}
	return bound
}

// held returns what the journal must have if this bound counts. ok is false if that is nothing.
func (s *segment) held(bound int64) (h held, ok bool) {
	h = held{s.name, s.known.ID, s.lastIncarnation, s.lastBlock, s.stock.From(bound)}
	return h, len(h.Blocks) > 0
}

// waitsForDisk reports whether requests wait that the stock could answer, but for its bound.
func (s *segment) waitsForDisk() bool { return len(s.waiting) > 0 && !s.needs().lacking }

// pace counts what a sequence issues in a second.
type pace struct {
	since, issued int64 // when the present second began, ns of AtMost, and what was issued before
	last          int64 // what was issued in a second before
}

// second returns what was issued in the last second, or in the present one if that is more.
func (p *pace) second(issued, now int64) int64 {
	n := issued - p.issued
	if passed := now - p.since; passed >= int64(time.Second) {
		p.last = int64(float64(n) * float64(time.Second) / float64(passed))
		p.since, p.issued = now, issued
		return p.last
	}
	return max(n, p.last)
}
