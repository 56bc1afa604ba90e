package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// commit makes the write of a step, in the session in which v was read. again means that it was not made, because
// another one was faster or the node may not take positions now, or that the series needs another step.
func (rw roundIO) commit(ctx context.Context, s *series, v view, st step) (again bool, err error) {
	sent, slot := rw.issuer.now(), rw.issuer.cfg.Tenure.Slot(rw.session)
	allowed := st.kind == putBackStep || slot.allows(st.Write)
	if allowed && len(st.dirs) > 0 {
		err = rw.issuer.cfg.Store.EnsureRoot(ctx, st.dirs...)
	}
	tried := allowed && err == nil
	if tried {
		err = rw.send(ctx, s, v, st, slot)
	}
	switch {
	case st.kind == modeStep && !tried:
		rw.wrote(s, v.View, st.Write, sent, mode.ErrNotSent) // its requests go on waiting
	case st.kind == modeStep:
		rw.wrote(s, v.View, st.Write, sent, err)
	case tried && err == nil && st.done != nil:
		st.done(rw.issuer.cfg.Log)
	}
	if !allowed || mode.NotMade(err) {
		return true, nil
	}
	// A record that was not put back is another matter: the node must not say that it has followed (S25).
	if st.kind != putBackStep && errors.Is(err, store.ErrQuota) {
		err = noRoomError{err}
	}
	return err == nil && st.kind != modeStep, err
}

// send makes the transaction of a step.
func (rw roundIO) send(ctx context.Context, s *series, v view, st step, slot Slot) error {
	ops := v.CheckOps()
	switch st.kind {
	case putBackStep:
		rw.putBackNames.add(s.Name) // also if the outcome is not known
	case modeStep:
		rw.traceWrite(s, v.View, st.Write, slot)
	}
	// A transaction that takes positions needs four records unchanged (S10): two that v.CheckOps names, the
	// node's slot, and the sequence's own record, which st.ops write at the version that was read.
	if st.kind != putBackStep {
		//mutant:s10-slot by TestTakingNeedsTheSlotUnchanged ->
		ops = append(ops, slot.check())
	}
	return rw.issuer.cfg.Store.Multi(store.OnSession(ctx, rw.session), append(ops, st.ops...)...)
}

// wrote ends a write of a mode.
func (rw roundIO) wrote(s *series, v mode.View, w mode.Write, sent int64, err error) {
	now := rw.issuer.now()
	if errors.Is(err, store.ErrQuota) {
		err = mode.ErrNotSent // it was not made. overQuota refuses the requests
	}
	s.Mu.Lock()
	//mutant:s26-before-zookeeper by seqsim -> woken, leaveUpTo := s.Issuing.Wrote(w, v, sent, now, nil)
	woken, leaveUpTo := s.Issuing.Wrote(w, v, sent, now, err)
	s.Mu.Unlock()
	rw.nextAlarm(s, now)
	//mutant:strict-makes-no-pause by TestStrictSequenceIsLeftToOthersAfterAWrite -> if leaveUpTo < 0 {
	if leaveUpTo > 0 {
		rw.pauseUpTo(s, leaveUpTo)
	}
	mode.WakeAll(woken)
}

// traceWrite traces a write that is about to be sent over what was read: one that takes a block, gives positions back,
// or changes the owner. The writes of a strict sequence are no steps, because each is an answer.
func (rw roundIO) traceWrite(s *series, v mode.View, w mode.Write, slot Slot) {
	r, was := w.Record, v.Record
	if rw.issuer.trace == nil || was == nil || r.Mode == record.Strict || r.Next == was.Next && r.Owner == was.Owner {
		return
	}
	about := []any{
		"name", s.Name, "id", r.ID, "inc", v.Incarnation(), "first", w.Block.First, "end", w.Block.End, "next", r.Next,
		"credit", r.Credit, "at", r.CreditAt, "owner", r.Owner, "nonce", r.Nonce,
		"slot", slot.Version, "wait_ms", slot.Wait.Milliseconds(),
		"was_next", was.Next, "was_inc", was.Incarnation, "was_credit", was.Credit, "was_at", was.CreditAt,
		"peak_from", was.PeakFrom, "peak_at", was.PeakAt, "ceiling", int64(was.CeilingInForce()), "hard", was.HardCeiling,
		"positions", was.Positions(), "was_owner", was.Owner, "hold_ms", was.HoldMs,
	}
	s.Mu.Lock()
	if m, ok := s.Issuing.(*ordered.Section); ok {
		about = append(about, m.Traced()...)
	}
	s.Mu.Unlock()
	rw.issuer.trace.Step("writes", about...)
}

// noRoomError: a quota keeps ZooKeeper from giving positions, or a new sequence. Nothing else needs that write.
type noRoomError struct{ error }

func (e noRoomError) Unwrap() error { return e.error }

// overQuota refuses requests for a series, because ZooKeeper has no room for a record that it needs.
func (rw roundIO) overQuota(s *series, err error) {
	now := rw.issuer.now()
	s.change(func() { s.Refuse(noBlockAfter(err), now) })
	told := &rw.issuer.quotaToldAt
	if last := told.Load(); now-last > int64(time.Minute) && told.CompareAndSwap(last, now) {
		rw.issuer.cfg.Log.Error("sequences: no room in ZooKeeper", "sequence", s.Name, "error", err)
	}
}

// unusable refuses requests for a series whose record cannot be used.
func (rw roundIO) unusable(s *series, err error) {
	path, news := record.Path(s.Name), false
	var other record.DamagedError
	if errors.As(err, &other) {
		path = other.Path
	}
	refusal, text := damaged(s.Name, path), "a record in ZooKeeper is damaged"
	if errors.Is(err, record.ErrUnknownMode) {
		refusal, text = unknownMode(s.Name, path), "this node does not know the mode of a sequence. Upgrade the node"
	}
	if s.change(func() { news = s.freeze(refusal, rw.issuer.now()) }); news {
		rw.issuer.cfg.Log.Error(text, "sequence", s.Name, "path", path, "error", err)
	}
}
