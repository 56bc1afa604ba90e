package seq

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"
)

// A node may have lost its witness file, but not its journal. Or its witness file is older, because the disk had no
// room for it. A block in the journal shows that the record had a higher next position: perhaps an operator had raised
// it, which no skip covers. So the node puts the record above that block (S35). The skip from there covers what other
// nodes have taken.

// raise returns the step that puts the record above the blocks in the journal, if ZooKeeper has lost them. It returns a
// *lostError if nobody has noticed that loss. A record that the node knows better is put back before: see
// series.restore. mu is held.
func (s *series) raise(v view, nonce, by string) (step, error) {
	h := s.journaled
	//mutant:s35-journal-raises-nothing by TestJournalRaisesTheRecord -> if true {
	if h == nil || v.record.Kind() != Sequence || v.record.ID != h.ID || v.record.Next >= h.Last.End {
		return step{}, nil
	}
	//mutant:s35-older-witness by TestJournalRaisesTheRecord -> if s.known == nil && v.incarnation() <= h.Incarnation {
	if v.incarnation() <= max(h.Incarnation, s.incarnation) {
		return step{}, &lostError{reason: "the record of sequence " + s.name + " is older than the journal"}
	}
	r := v.record.raised(h.Last.End).written(nonce, by)
	return step{kind: restoreStep, ops: setRecord(s.name, r, v.stat.Version), done: func(log hclog.Logger) {
		log.Warn("ZooKeeper has lost blocks of a sequence that are in this node's journal. This node has put the next "+
			"position above them", "sequence", s.name, "next_position", r.Next)
	}}, nil
}

// raiseKept makes the steps of series.raise while the node knows no /seq and waits for the confirming time: nobody
// takes positions yet. v is what was read of /seq. Without it there are no records.
//
// Until all is compared, the node says in its slot that it still compares its records: see Issuer.Followed. It must not
// wait for its peers meanwhile, because they may wait for it.
func (i *Issuer) raiseKept(ctx context.Context, v view) error {
	if i.journal == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(i.cfg.Parallel)
	began, left := i.now(), false
	for _, s := range i.list() {
		if v.state == nil || !s.mayRaise(i.known.incarnation) {
			continue
		}
		left = true // the next round sees what was done in this one
		group.Go(func() error {
			if i.now()-began >= int64(i.roundTime) {
				i.Wake()
				return nil
			}
			return i.raiseOne(ctx, s)
		})
	}
	i.journal.raises.Store(left)
	err := group.Wait()
	if sign := (*lostError)(nil); errors.As(err, &sign) {
		i.report(sign.reason)
		return nil
	}
	return err
}

// mayRaise reports whether the record must be compared with the journal, in this incarnation.
func (s *series) mayRaise(incarnation int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journaled != nil && s.known == nil && s.incarnation < incarnation
}

func (i *Issuer) raiseOne(ctx context.Context, s *series) error {
	v, err := i.look(ctx, s, true)
	//mutant:s35-damaged by TestJournalRaisesBesideADamagedRecord -> if false {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnknownMode) { // nobody takes positions of it
		s.mu.Lock()
		s.incarnation = i.known.incarnation
		s.mu.Unlock()
		return nil
	}
	if err != nil || v.state == nil || i.known.judge(v) != foundGood { // the next round sees it
		return err
	}
	s.mu.Lock()
	st, err := s.raise(v, i.cfg.Nonce(), i.cfg.By)
	if err == nil && st.kind == noStep {
		s.incarnation = v.incarnation()
	}
	s.mu.Unlock()
	if err == nil && st.kind != noStep {
		_, err = i.commit(ctx, s, v, st) // the next round sees whether it was made
	}
	return err
}
