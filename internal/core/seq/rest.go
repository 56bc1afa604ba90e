package seq

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
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
func (i *Rounds) giveBack(ctx context.Context) error {
	left := i.endOwnerships(ctx)
	return errors.Join(left, i.giveBackRests(ctx))
}

func (i *Rounds) giveBackRests(ctx context.Context) error {
	rests := i.collectRests()
	views, err := i.lookAtRests(ctx, rests)
	if err != nil && i.outlasts() { // nothing goes back: all of it stays in the journal
		for k := range rests {
			rests[k].returns = nil
		}
	}
	if saved := i.saveRests(rests); saved != nil {
		return errors.Join(saved, err)
	}
	for k, r := range rests {
		if ctx.Err() != nil { // the time is over: the journal keeps the rest
			rests[k].returns = nil
		}
		if rests[k].returns == nil {
			continue
		}
		again, failed := i.commit(ctx, r.s, views[k], *r.returns)
		err = errors.Join(err, failed)
		if again || failed != nil && !errors.Is(failed, store.ErrUnreachable) { // nothing was written
			rests[k].returns = nil
		}
	}
	return errors.Join(err, i.saveRests(rests)) // it has again what could not be given back
}

// rest is what a node that stops holds of a sequence.
type rest struct {
	s    *series
	keep held
	give record.Remainder
	// may: the node could give that back. returns is the step that does so. nil: the journal keeps it.
	may     bool
	returns *step
}

// outlasts reports whether what the node holds outlasts the process.
func (i *Issuer) outlasts() bool { return i.journal != nil && !i.cfg.Tenure.Leaves() }

// collectRests takes what the node holds out of all sequences.
func (i *Rounds) collectRests() (all []rest) {
	seconds, values := int64(0), int64(0)
	if i.outlasts() {
		seconds, values = keepSeconds, keepValues
	}
	now := i.now()
	for _, s := range i.list() {
		s.Mu.Lock()
		if s.kept != nil {
			all = append(all, rest{s: s, keep: *s.kept})
		} else if m := s.stocked(); m != nil {
			keep, any := m.held(m.stock.After(0))
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
				all = append(all, rest{s: s, keep: keep, give: give, may: may && give.Block.Len() > 0})
			}
		}
		s.Mu.Unlock()
	}
	return all
}

// lookAtRests reads the records, and decides which rests can be given back.
func (i *Rounds) lookAtRests(ctx context.Context, rests []rest) (views []view, err error) {
	views = make([]view, len(rests))
	if !slices.ContainsFunc(rests, func(r rest) bool { return r.may }) {
		return views, nil
	}
	cluster, joined := i.cfg.Tenure.Cluster()
	if i.cfg.Store.SessionID() == 0 {
		return views, errors.New("ZooKeeper is not connected")
	}
	if i.noteSession(); !joined || i.known.seq() == nil || i.known.owes() || i.unconfirmed(cluster) > 0 {
		return views, errors.New("this node may not write now")
	}
	for k, r := range rests {
		if !r.may {
			continue
		}
		v, err := i.look(ctx, r.s, true)
		if err != nil {
			return views, err
		}
		if i.known.judge(v) != record.Good || v.Record == nil {
			continue
		}
		if after, possible := v.Record.ReturnOf(r.give, v.Incarnation()); possible {
			st := stepOf(mode.Write{Write: record.Write{Record: after}}, r.s.Name, v.View, i.cfg.Nonce(), i.cfg.By)
			rests[k].returns, views[k] = &st, v
		}
	}
	return views, nil
}

// saveRests writes what the node keeps into the journal: all that is not given back.
func (i *Rounds) saveRests(rests []rest) error {
	j := i.journal
	if j == nil {
		return nil
	}
	if i.cfg.Tenure.Leaves() {
		return i.inTime(j.remove)
	}
	all := make([]held, 0, len(rests))
	for _, r := range rests {
		//mutant:s33-given-back-and-kept by seqsim -> if false {
		if r.returns != nil { // out of the journal before it is returned (S33)
			r.keep = r.keep.below(r.give.Block.First)
		}
		if len(r.keep.Blocks) > 0 {
			all = append(all, r.keep)
		}
	}
	j.mu.Lock()
	node, begun := j.node, j.begun
	j.mu.Unlock()
	if !begun || node == "" {
		return nil
	}
	return i.inTime(func() error { return i.writeJournal(all, node, i.progress.Load().knewAllAt) })
}

// inTime calls f, which works on the disk, and waits for limits.Round at most. A disk that hangs must not keep the node
// from giving its worker back.
func (i *Rounds) inTime(f func() error) error {
	ended := make(chan error, 1)
	i.writing.Go(func() { ended <- f() })
	late := time.NewTimer(limits.Round)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errors.New("the state directory does not answer")
	}
}

// below returns the part of h below p.
func (h held) below(p int64) held {
	h.Last.End = min(h.Last.End, p)
	var blocks []positions.Block
	for _, b := range h.Blocks {
		if b.End = min(b.End, p); b.Len() > 0 {
			blocks = append(blocks, b)
		}
	}
	h.Blocks = blocks
	return h
}
