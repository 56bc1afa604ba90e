package seq

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// A node that stops keeps what it issues in keepSeconds, and at least keepValues of a sequence that is used now
// and then. So it finds values in its journal when it starts again. The rest goes back to ZooKeeper.
const keepSeconds, keepValues = 15, 15

// giveBack ends the sequences of a node that stops. The journal keeps what the next process needs in its first
// seconds. The rest goes back to ZooKeeper, where nobody has taken a block since: first out of the journal, then into
// ZooKeeper (S33). Requests must have ended before.
func (rs *Rounds) giveBack(ctx context.Context) error {
	left := rs.endOwnerships(ctx)
	return errors.Join(left, rs.giveBackRests(ctx))
}

func (rs *Rounds) giveBackRests(ctx context.Context) error {
	rests := rs.collectRests()
	views, err := rs.lookAtRests(ctx, rests)
	if err != nil && rs.issuer.outlasts() { // nothing goes back: all of it stays in the journal
		for k := range rests {
			rests[k].giveStep = nil
		}
	}
	if saved := rs.saveRests(rests); saved != nil {
		return errors.Join(saved, err)
	}
	for k, r := range rests {
		if ctx.Err() != nil { // the time is over: the journal keeps the rest
			rests[k].giveStep = nil
		}
		if rests[k].giveStep == nil {
			continue
		}
		again, failed := rs.follower.round().commit(ctx, r.s, views[k], *r.giveStep)
		err = errors.Join(err, failed)
		if again || failed != nil && !errors.Is(failed, store.ErrUnreachable) { // nothing was written
			rests[k].giveStep = nil
		}
	}
	return errors.Join(err, rs.saveRests(rests)) // it has again what could not be given back
}

// rest has the positions of a sequence that a node holds when it stops.
type rest struct {
	s    *series
	keep held
	give record.Remainder
	// canGive: the node could give that back. giveStep is the step that does so. nil: the journal keeps it.
	canGive  bool
	giveStep *step
}

// outlasts reports whether what the node holds outlasts the process.
func (i *Issuer) outlasts() bool { return i.journal != nil && !i.cfg.Tenure.Leaves() }

// collectRests takes what the node holds out of all sequences.
func (rs *Rounds) collectRests() (all []rest) {
	seconds, values := int64(0), int64(0)
	if rs.issuer.outlasts() {
		seconds, values = keepSeconds, keepValues
	}
	now := rs.issuer.now()
	for _, s := range rs.issuer.series.list() {
		s.Mu.Lock()
		if s.kept != nil {
			all = append(all, rest{s: s, keep: *s.kept})
		} else if m := s.stocked(); m != nil {
			keep := *m.held(m.stock.After(0))
			any := len(keep.Blocks) > 0
			split := m.stock.After(seconds * m.pace.second(m.Issued, now))
			if now-m.AskedAt < int64(time.Minute) { // it is used, now and then
				split = max(split, m.stock.After(values))
			}
			if any { // requests have ended: what is left was not issued
				m.traceBound(m.stock.After(0))
			}
			give, may := m.takeRest()
			give.Block.First = max(give.Block.First, split)
			if any {
				all = append(all, rest{s: s, keep: keep, give: give, canGive: may && give.Block.Len() > 0})
			}
		}
		s.Mu.Unlock()
	}
	return all
}

// lookAtRests reads the records, and decides which rests can be given back.
func (rs *Rounds) lookAtRests(ctx context.Context, rests []rest) (views []view, err error) {
	views = make([]view, len(rests))
	if !slices.ContainsFunc(rests, func(r rest) bool { return r.canGive }) {
		return views, nil
	}
	rs.follower.noteConnection()
	rd := rs.follower.round()
	if rd.session == 0 {
		return views, errors.New("ZooKeeper is not connected")
	}
	if !rs.follower.joined || rd.losses.seq() == nil || rd.losses.owes() || rd.unconfirmed() > 0 {
		return views, errors.New("this node may not write now")
	}
	for k, r := range rests {
		if !r.canGive {
			continue
		}
		v, err := rd.look(ctx, r.s, true)
		if err != nil {
			return views, err
		}
		if rd.losses.finding(v) != record.Good || v.Record == nil {
			continue
		}
		if after, possible := v.Record.ReturnOf(r.give, v.Incarnation()); possible {
			w := mode.Write{Write: record.Write{Record: after}}
			st := stepOf(w, r.s.Name, v.View, rs.issuer.cfg.Nonce(), rs.issuer.cfg.By)
			rests[k].giveStep, views[k] = &st, v
		}
	}
	return views, nil
}

// saveRests writes what the node keeps into the journal: all that is not given back.
func (rs *Rounds) saveRests(rests []rest) error {
	j := rs.issuer.journal
	if j == nil {
		return nil
	}
	if rs.issuer.cfg.Tenure.Leaves() {
		return rs.inTime(j.remove)
	}
	return rs.inTime(func() error {
		due, node := j.popDue()
		if node == "" {
			return nil
		}
		changes := entries{}
		for _, s := range append(due, rs.issuer.series.list()...) { // the list lacks those that were forgotten
			changes[s.Name] = nil
		}
		for _, r := range rests {
			//mutant:s33-given-back-and-kept by seqsim -> if false {
			if r.giveStep != nil { // out of the journal before it is returned (S33)
				r.keep = r.keep.below(r.give.Block.First)
			}
			changes[r.s.Name] = r.keep.entry()
		}
		return rs.issuer.writeJournal(changes, node, rs.issuer.progress.Load().knewAllAt)
	})
}

// below returns the part of h below p. If nothing is left of the last block, another node may give the block before
// it back. Then the next position falls, but never below what this node keeps. So an empty last block ends there.
func (h held) below(p int64) held {
	var blocks []positions.Block
	for _, b := range h.Blocks {
		if b.End = min(b.End, p); b.Len() > 0 {
			blocks = append(blocks, b)
		}
	}
	h.Last.End, h.Blocks = min(h.Last.End, p), blocks
	//mutant:s33-claims-what-is-given-back by TestJournalClaimsNoBlockThatWasGivenBack -> if false {
	if h.Last.Len() <= 0 && len(blocks) > 0 {
		end := blocks[len(blocks)-1].End
		h.Last = positions.Block{First: end, End: end}
	}
	return h
}
