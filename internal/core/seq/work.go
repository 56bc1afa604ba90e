package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// The I/O of a round for one series.

// roundWorker has the facts that the goroutines of a round go by. It is a copy, so it does not change while they run.
// They also reach restored and, through worklist, the agenda.
type roundWorker struct {
	issuer   *Issuer
	cluster  ClusterInfo
	losses   lossState
	session  int64
	spread   time.Duration // see the function spread
	restored *restored     // to which the goroutines add
}

// roundWorker returns what the goroutine of Rounds knows now.
func (fo *follower) roundWorker() roundWorker {
	return roundWorker{fo.issuer, fo.cluster, fo.losses, fo.session, fo.spread, &fo.restored}
}

// maxTries is the number of tries in one round. Usually a try fails because another node is faster. One that ends
// with errReadBefore or mode.ErrNotSent, or with a step after which another one is due, counts as well.
const maxTries = 3

// work does what is due for a series: it reads all that the decision needs, decides, and makes one write. It does so
// again if another write was faster, or if that one put back or created what the next one needs.
func (rw roundWorker) work(ctx context.Context, s *series) error {
	for tries := range maxTries {
		sent := rw.issuer.cfg.Elapsed.Now()
		v, err := rw.gather(ctx, s, tries == 0) // a write that failed leaves nothing to reuse
		if err != nil {
			return err
		}
		st, err := s.decide(v, rw.situation(sent))
		if errors.Is(err, errReadBefore) {
			continue
		}
		if err != nil || st.kind == noStep {
			rw.nextAlarm(s, rw.issuer.now())
			return err
		}
		if again, err := rw.commit(ctx, s, v, st); err != nil || !again {
			return err
		}
	}
	rw.pauseSeries(s)
	return nil
}

// situation returns what a decision goes by besides the records. The records were read at sent, which is the present
// time if none were.
func (rw roundWorker) situation(sent timeguard.Moment) mode.Situation {
	unconfirmed := rw.unconfirmed()
	//mutant:s36-takes-before by TestFamilyIsReadBeforeItsSections -> if false {
	if !rw.losses.hasSettled() { // the confirming time has ended in the middle of this round
		unconfirmed = max(unconfirmed, time.Millisecond)
	}
	return mode.Situation{
		AtMost: sent.Most, AtLeast: sent.Least, SeqTime: rw.losses.seqTime(sent.Least),
		Unconfirmed: unconfirmed, Spread: rw.spread,
		Volatile: !rw.issuer.outlasts(), Nonce: rw.issuer.cfg.Nonce(), By: rw.issuer.cfg.By, Session: rw.session,
	}
}

// gather reads /cluster, /seq and the record of a series, and what else a decision needs. It returns a *lostError if
// ZooKeeper has lost data.
//
// With reuse, gather reads no record if the last write of the series has left one in this session, and /seq was not
// read in a later state since. If ZooKeeper has changed all the same, the next write fails, because versions only grow
// within a session.
func (rw roundWorker) gather(ctx context.Context, s *series, reuse bool) (v view, err error) {
	s.Mu.Lock()
	if reuse && !s.Stale && s.Last != nil { // a new session makes all records stale
		v.View = *s.Last
	}
	s.Mu.Unlock()
	if v.State == nil || rw.losses.finding(v) != record.Good { // not record.Lost: a view from before shows no loss
		if v, err = rw.look(ctx, s, false); err != nil {
			return view{}, err
		}
	}
	switch rw.losses.finding(v) {
	case record.Lost:
		return view{}, &lostError{reason: record.ClusterPath + " or " + record.StatePath + " is missing, or older than before"}
	case record.Later:
		return view{}, &lostError{later: true}
	}
	if v.State == nil { // nobody has put it back in this incarnation yet: a node that stops may ask so early
		return view{}, &lostError{later: true}
	}
	err = rw.readMore(ctx, &v, s.wants(v, rw.issuer.now())) // fills in v, so it is no part of the return statement
	return v, err
}

// readMore reads what a decision needs besides the record into v: the records of templates if there is no record, else
// its request keys, its map key, or both.
func (rw roundWorker) readMore(ctx context.Context, v *view, w extraReads) error {
	if len(w.templates) > 0 {
		return rw.readTemplates(ctx, v, w.templates)
	}
	var paths []string
	if w.requestKeys != "" {
		paths = append(paths, record.RequestKeysPath(w.requestKeys))
	}
	if w.mapKey != "" {
		paths = append(paths, record.MapKeyPath(w.mapKey))
	}
	if len(paths) == 0 {
		return nil
	}
	found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	if w.mapKey != "" {
		v.MapKey = &found[len(found)-1]
	}
	if w.requestKeys != "" {
		v.RequestKeys = &record.RequestKeys{Exists: found[0].Found, Version: found[0].Stat.Version}
		v.RequestKeys.Entries, err = record.ParseRequestKeys(found[0].Data)
		return record.DamagedAt(record.RequestKeysPath(w.requestKeys), err)
	}
	return nil
}

// pauseSeries lets a round that comes a little later try again.
func (rw roundWorker) pauseSeries(s *series) {
	s.Mu.Lock()
	most := mode.Backoff(s.FailedRounds)
	if s.mode != nil {
		most = s.mode.Pause(rw.issuer.now())
	}
	s.FailedRounds++
	s.Mu.Unlock()
	rw.pauseUpTo(s, most)
}

// pauseUpTo makes the rounds leave a series alone for a random time.
func (rw roundWorker) pauseUpTo(s *series, most time.Duration) {
	until := rw.issuer.now() + int64(rw.issuer.cfg.Retry(most))
	s.Mu.Lock()
	s.PausedUntil = until
	s.Mu.Unlock()
	rw.issuer.alarms.set(s, alarm{until, until})
}

// unconfirmed returns the time left until this node may take positions, 0 if it may (S9, S11, S12). In a new
// incarnation it waits for the confirming time: in that time, nodes put back what they know better, or tell that they
// need longer. A next value that was raised and a sequence that was created again are not covered by the skip after a
// loss.
func (rw roundWorker) unconfirmed() time.Duration {
	left := rw.putBackLeft()
	slot := rw.issuer.cfg.Tenure.Slot(rw.session)
	if slot.Path == "" {
		return max(left, rw.issuer.cfg.Follow)
	}
	//mutant:s11-no-wait-after-a-gap by seqsim -> return left
	return max(left, slot.Wait)
}

// putBackLeft returns the time for which other nodes may still put back what they know better (S9).
func (rw roundWorker) putBackLeft() time.Duration {
	return rw.losses.putBackLeft(rw.issuer.cfg.Elapsed.Now(), rw.cluster.ConfirmTime)
}

// look reads /cluster, /seq and the record of a series. If s is nil it reads the node's slot instead, which shows when
// ZooKeeper's leader has stamped the last heartbeat. look reads again after a sync if the first look seems to show a
// loss of data, or if an outcome must be known: a server may lag behind.
func (rw roundWorker) look(ctx context.Context, s *series, synced bool) (view, error) {
	var known *record.Record
	paths, slots := []string{record.ClusterPath, record.StatePath}, 0
	if slot := rw.issuer.cfg.Tenure.Slot(rw.session); s == nil && slot.Path != "" {
		paths, slots = append(paths, slot.Path), 1
	}
	if s != nil {
		s.Mu.Lock()
		known, paths = s.known, append(paths, record.Path(s.Name))
		synced = synced || s.unsure() || s.journaled != nil || rw.losses.incarnation > s.incarnation
		s.Mu.Unlock()
	}
	for reads := 1; ; reads++ {
		if synced {
			if err := rw.issuer.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, store.ErrNoNode) {
				return view{}, err
			}
		}
		sent := rw.issuer.now()
		found, err := rw.issuer.cfg.Store.GetAll(ctx, paths...)
		if err != nil {
			return view{}, err
		}
		v := view{before: known, View: mode.View{SentAt: sent, AnsweredAt: rw.issuer.cfg.Elapsed.Now()}}
		if v.Snapshot, err = record.ParseSnapshot(found[:len(paths)-slots]); err != nil {
			return view{}, err
		}
		v.leader = v.StateWritten
		for _, slot := range found[len(paths)-slots:] {
			v.leader = max(v.leader, slot.Stat.Mtime)
		}
		if rw.losses.finding(v) == record.Good && v.State != nil &&
			record.Compare(v.Record, known, v.State.Purged) != record.Lost {
			return v, nil
		}
		// twice, because GetAll is not atomic: a purge may have come between /seq and the record
		if synced && reads > 1 {
			return v, nil
		}
		synced = true
	}
}

// commit makes the write of a step, in the session in which v was read. again means that it was not made, because
// another one was faster or the node may not take positions now, or that the series needs another step.
func (rw roundWorker) commit(ctx context.Context, s *series, v view, st step) (again bool, err error) {
	begun, ops, slot := rw.issuer.now(), v.CheckOps(), rw.issuer.cfg.Tenure.Slot(rw.session)
	// A transaction that takes positions needs four records unchanged (S10): two that v.CheckOps names, the
	// node's slot, and the sequence's own record, which st.ops write at the version that was read.
	if st.kind != putBackStep {
		//mutant:s10-slot by TestTakingNeedsTheSlotUnchanged ->
		ops = append(ops, slot.check())
		if !slot.allows(st.Write) {
			err = mode.ErrNotSent
		}
	}
	if err == nil && len(st.dirs) > 0 {
		err = rw.issuer.cfg.Store.EnsureRoot(ctx, st.dirs...)
	}
	sent := err == nil
	if sent {
		if st.kind == putBackStep { // also if the outcome is not known
			rw.restored.add(s.Name)
		}
		if st.kind == takeStep {
			rw.traceWrite(s, v.View, st.Write, slot)
		}
		err = rw.issuer.cfg.Store.Multi(store.OnSession(ctx, rw.session), append(ops, st.ops...)...)
	}
	switch {
	case st.kind == takeStep && !sent:
		rw.wrote(s, v.View, st.Write, begun, mode.ErrNotSent) // its requests go on waiting
	case st.kind == takeStep:
		rw.wrote(s, v.View, st.Write, begun, err)
	case err == nil && st.done != nil:
		st.done(rw.issuer.cfg.Log)
	}
	if mode.NotMade(err) {
		return true, nil
	}
	// A record that was not put back is another matter: the node must not say that it has followed (S25).
	if st.kind != putBackStep && errors.Is(err, store.ErrQuota) {
		err = noRoomError{err}
	}
	return err == nil && st.kind != takeStep, err
}

// noRoomError: a quota keeps ZooKeeper from giving positions, or a new sequence. Nothing else needs that write.
type noRoomError struct{ error }

func (e noRoomError) Unwrap() error { return e.error }

// overQuota refuses requests for a series, because ZooKeeper has no room for a record that it needs.
func (rw roundWorker) overQuota(s *series, err error) {
	now := rw.issuer.now()
	s.change(func() { s.Refuse(noBlockAfter(err), now) })
	told := &rw.issuer.quotaToldAt
	if last := told.Load(); now-last > int64(time.Minute) && told.CompareAndSwap(last, now) {
		rw.issuer.cfg.Log.Error("sequences: no room in ZooKeeper", "sequence", s.Name, "error", err)
	}
}

// unusable refuses requests for a series whose record cannot be used.
func (rw roundWorker) unusable(s *series, err error) {
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

// wrote ends a write of a mode.
func (rw roundWorker) wrote(s *series, v mode.View, w mode.Write, sent int64, err error) {
	now := rw.issuer.now()
	if errors.Is(err, store.ErrQuota) {
		err = mode.ErrNotSent // it was not made. overQuota refuses the requests
	}
	s.Mu.Lock()
	//mutant:s26-before-zookeeper by seqsim -> woken, leaveUpTo := s.mode.Wrote(w, v, sent, now, nil)
	woken, leaveUpTo := s.mode.Wrote(w, v, sent, now, err)
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
func (rw roundWorker) traceWrite(s *series, v mode.View, w mode.Write, slot Slot) {
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
	if m, ok := s.mode.(*ordered.Section); ok {
		about = append(about, m.Traced()...)
	}
	s.Mu.Unlock()
	rw.issuer.trace.Step("writes", about...)
}
