package seq

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// A node may have lost its witness file, but not its journal. Or its witness file is older, because the disk had no
// room for it. A block in the journal shows that the record had a higher next position: perhaps an operator had raised
// it, which no skip covers. So the node puts the record above that block (S35). The skip from there covers what other
// nodes have taken.

// putAboveJournal returns the step that puts the record above the blocks in the journal, if ZooKeeper has lost them. It
// returns a *lostError if nobody has noticed that loss. If the node knows the record better, series.putBack comes
// first. Mu is held.
func (s *series) putAboveJournal(v view, nonce, by string) (step, error) {
	h := s.journaled
	//mutant:s35-journal-raises-nothing by TestJournalRaisesTheRecord -> if true {
	if h == nil || v.Record.Kind() != record.Sequence || v.Record.ID != h.ID || v.Record.Next >= h.Last.End {
		return step{}, nil
	}
	//mutant:s35-older-witness by TestJournalRaisesTheRecord -> if s.Known == nil && v.Incarnation() <= h.Incarnation {
	if v.Incarnation() <= max(h.Incarnation, s.incarnation) {
		return step{}, &lostError{reason: "the record of sequence " + s.Name + " is older than the journal"}
	}
	r := v.Record.Raised(h.Last.End).Stamped(nonce, by)
	return step{kind: putBackStep, ops: record.SetOps(s.Name, r, v.Stat.Version), done: func(log hclog.Logger) {
		log.Warn("ZooKeeper has lost blocks of a sequence that are in this node's journal. This node has put the next "+
			"position above them", "sequence", s.Name, "next_position", r.Next)
	}}, nil
}

// putAllAboveJournal makes the steps of series.putAboveJournal while the node knows no /seq and waits for the
// confirming time. So nobody takes positions yet. v has /seq as it was read. Without /seq there are no records.
//
// Until all is compared, the node says in its slot that it still compares its records: see Issuer.Followed. It must not
// wait for its peers meanwhile, because they may wait for it.
func (fo *follower) putAllAboveJournal(ctx context.Context, v view, most time.Duration) error {
	if fo.issuer.journal == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fo.issuer.cfg.Parallel)
	rw, began, left := fo.roundIO(), fo.issuer.now(), false
	for _, s := range fo.issuer.series.list() {
		if v.State == nil || !s.comparesJournal(fo.losses.Incarnation()) {
			continue
		}
		left = true // the next round sees what was done in this one
		group.Go(func() error {
			if fo.issuer.now()-began >= int64(most) {
				fo.issuer.Wake()
				return nil
			}
			return rw.putOneAboveJournal(ctx, s)
		})
	}
	fo.issuer.publish(func(p *progress) { p.noteJournalLeft(left) })
	err := group.Wait()
	if sign := (*lostError)(nil); errors.As(err, &sign) {
		fo.report(sign.reason)
		return nil
	}
	return err
}

// comparesJournal reports whether the record must be compared with the journal, in this incarnation.
func (s *series) comparesJournal(incarnation int64) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.journaled != nil && s.Known == nil && s.incarnation < incarnation
}

func (rw roundIO) putOneAboveJournal(ctx context.Context, s *series) error {
	v, err := rw.look(ctx, s, true)
	//mutant:s35-damaged by TestJournalRaisesBesideADamagedRecord -> if false {
	if errors.Is(err, record.ErrDamaged) || errors.Is(err, record.ErrUnknownMode) { // nobody takes positions of it
		s.Mu.Lock()
		s.incarnation = rw.losses.Incarnation()
		s.Mu.Unlock()
		return nil
	}
	if err != nil || v.State == nil || rw.losses.Finding(v.Snapshot) != record.Good { // the next round sees it
		return err
	}
	s.Mu.Lock()
	st, err := s.putAboveJournal(v, rw.issuer.cfg.Nonce(), rw.issuer.cfg.By)
	if err == nil && st.kind == noStep {
		s.incarnation = v.Incarnation()
	}
	s.Mu.Unlock()
	if err == nil && st.kind != noStep {
		_, err = rw.commit(ctx, s, v, st) // the next round sees whether it was made
	}
	return err
}
