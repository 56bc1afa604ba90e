package seq

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// What a loss of data is to a node, in the order of time:
//
//  1. A read shows that /cluster, /seq or a record is missing, or older than before: see Compare. The node reports it,
//     and package coordinator raises the incarnation (S7).
//  2. The node reads the later incarnation, and is behind: see knowledge. When a heartbeat has followed, it fixes the
//     sequence time that it puts back, by what has passed since the last read that it was sure of (S24).
//  3. One node puts /seq back: State.PutIn. Its time has jumped: State.Jumped. Waits for deleted lives begin anew
//     (S18).
//  4. Each node compares the records that it knows, and puts back what it knows better (S8): it is counting. While that
//     lasts, it tells so at each heartbeat: State.PutAt. The others note when they have read that.
//  5. When the confirming time has passed since (S9), the node reads all records again, and has settled. Then it takes
//     positions, and has followed all changes (S36).

// report reports a loss of data, which package coordinator owns (S7).
func (rs *Rounds) report(found string) {
	if !rs.shared.known.reported {
		rs.issuer.cfg.Log.Warn("ZooKeeper may have lost data; the records of all sequences will be compared",
			"incarnation", rs.shared.known.incarnation, "found", found)
	}
	rs.shared.known.reported = true
	//mutant:s7-no-report by TestBlockThatARivalHasTakenIsDropped ->
	rs.issuer.cfg.Tenure.ReportLoss(rs.shared.known.incarnation, found)
}

// follow reads /cluster and /seq, if that is due, and finds the sequences that operators have changed. followed
// means that they were read, and show no loss of data. The first node with a confirmed worker creates /seq.
func (rs *Rounds) follow(ctx context.Context) (v view, followed bool, err error) {
	if known := rs.shared.known.seq(); known != nil && known.state.Cluster != rs.shared.cluster.UUID {
		rs.forgetCluster()
	}
	young := rs.issuer.now()-rs.shared.stateReadAt < int64(rs.issuer.cfg.Pulse.Apart(rs.issuer.cfg.Follow))
	if rs.shared.current && young && !rs.shared.known.mustMeet(rs.issuer.cfg.Elapsed.Now(), rs.shared.cluster.ConfirmTime) {
		return view{}, false, nil
	}
	for range maxConflicts {
		slot, sent := rs.issuer.cfg.Tenure.Slot(rs.shared.session), rs.issuer.cfg.Elapsed.Now()
		if v, err = rs.round().look(ctx, nil, false); err != nil {
			return view{}, false, err
		}
		if err := v.Belongs(rs.shared.cluster.UUID); err != nil {
			return view{}, false, err
		}
		followed, again, err := rs.compare(ctx, v, sent, slot)
		if err != nil || !again {
			return v, followed, err
		}
	}
	return view{}, false, nil
}

// compare compares /cluster and /seq with what the node knows, and takes them over. sent is when the read was sent, and
// slot the node's slot then. again means that they must be read again: this node has written them, or another was
// faster.
func (rs *Rounds) compare(
	ctx context.Context, v view, sent timeguard.Moment, slot Slot,
) (followed, again bool, err error) {
	now := rs.issuer.cfg.Elapsed.Now()
	r := rs.shared.known.observe(v, sent, now, slot, rs.shared.cluster)
	if r.entered {
		rs.issuer.trace.Step("enters", "inc", rs.shared.known.incarnation, "at", rs.shared.known.entered.Boot)
		rs.markChanged(nil, true)
	}
	switch r.kind {
	case reportsLoss:
		rs.report(record.ClusterPath + " or " + record.StatePath + " is missing, or older than before")
		rs.shared.current = false
	case waits: // the next heartbeat wakes the Issuer
		rs.shared.current = false
	case writesState:
		return false, true, rs.writeState(ctx, v, r.write)
	case follows:
		rs.markChanged(r.changed, false)
		rs.shared.seen = v.Found
		rs.publish(func(p *progress) { p.knowsState = true })
		rs.shared.current, rs.shared.stateReadAt = true, now.Most
	}
	return r.kind == follows, false, nil
}

// meetAll makes the next rounds meet all names that there are, so that the node learns each record. An operator may
// have raised its next value, or created it again, and after a loss of data this node may be the only one left that
// could know.
func (rs *Rounds) meetAll(ctx context.Context) (err error) {
	rs.agenda.unmet, err = rs.issuer.cfg.Store.Children(ctx, record.RecordsDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	rs.markChanged(nil, true)
	rs.shared.known.meet()
	return nil
}

// meetMore marks the names in some of the buckets that meetAll has found, and reports whether that were all. Requests
// must not wait long for it.
func (rs *Rounds) meetMore(ctx context.Context) (all bool, err error) {
	for began := rs.issuer.now(); len(rs.agenda.unmet) > 0 && rs.issuer.now()-began < int64(rs.agenda.roundTime/2); {
		some := rs.agenda.unmet[:min(len(rs.agenda.unmet), rs.issuer.cfg.Parallel)]
		group, ctx := errgroup.WithContext(ctx)
		for _, bucket := range some {
			group.Go(func() error {
				names, err := rs.issuer.cfg.Store.Children(ctx, record.RecordsDir+"/"+bucket)
				if errors.Is(err, store.ErrNoNode) {
					return nil
				}
				for k := range names {
					names[k] = record.NameOf(names[k])
				}
				rs.markChanged(names, false)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
		rs.agenda.unmet = rs.agenda.unmet[len(some):]
	}
	if len(rs.agenda.unmet) > 0 {
		rs.issuer.Wake()
	}
	return len(rs.agenda.unmet) == 0, nil
}

// toPutBack returns the number of records that the node knows and has not compared in this incarnation. Those that it
// still lacks when it has met all cannot be used.
func (rs *Rounds) toPutBack() (n int) {
	if rs.shared.known.hasSettled() {
		return 0
	}
	for _, s := range rs.issuer.series.list() {
		s.Mu.Lock()
		if s.Stale && (s.known != nil || s.journaled != nil) && s.incarnation < rs.shared.known.incarnation {
			n++
		}
		s.Mu.Unlock()
	}
	return n
}

// boundRounds makes rounds short while something must be done between them: leases be renewed, or others be told in
// time that the node still has so many records to put back.
func (rs *Rounds) boundRounds(lost int) {
	rs.agenda.roundTime = longestRound
	if rs.issuer.owners.Used() {
		rs.agenda.roundTime = record.MinLease / 4
	}
	if lost > 0 && rs.shared.cluster.ConfirmTime > 0 {
		rs.agenda.roundTime = min(rs.agenda.roundTime, rs.shared.cluster.ConfirmTime/4)
	}
}

// tellInTime tells at each heartbeat that the node still puts records back, and which it has put back: see
// knowledge.tells. Nobody takes positions before the confirming time has passed since the last time: with many records
// it takes longer than that to put them back, and the node may be the only one that knows a raised next value.
func (rs *Rounds) tellInTime(ctx context.Context, v view, lost int) (told bool, err error) {
	names := rs.shared.restored.all()
	next, due := rs.shared.known.tells(lost, names, rs.issuer.cfg.Elapsed.Now(), rs.issuer.cfg.Follow)
	if !due {
		return false, nil
	}
	err = rs.writeTimes(ctx, v, next, false)
	if rs.shared.known.seq().state.Changes == next.Changes { // else the next round tells it
		rs.shared.restored.drop(len(names))
	}
	return true, err
}

// restored are the names of records that the node has put back.
type restored struct {
	mu    sync.Mutex
	names []string
}

func (r *restored) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *restored) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[:len(r.names):len(r.names)]
}

// drop drops the first n names.
func (r *restored) drop(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = slices.Clone(r.names[n:]) // a loss may have left a million names
}

// writeState writes /seq, or creates it, unless another write was faster.
func (rs *Rounds) writeState(ctx context.Context, v view, st record.State) error {
	ops := []store.Op{v.CheckCluster(), store.CreateOp{Path: record.StatePath, Data: st.Marshal()}}
	if v.State != nil {
		ops = append(ops[:1], v.SetState(st)...)
	}
	err := rs.issuer.cfg.Store.Multi(store.OnSession(ctx, rs.shared.session), ops...)
	if store.Outpaced(err) {
		return nil
	}
	return err
}

// forgetCluster drops all that the node knows, because it has joined another cluster.
func (rs *Rounds) forgetCluster() {
	rs.issuer.series.remove(func(s *series) bool {
		s.change(func() { s.vanish(longAgoNs); s.forgotten.Store(true) })
		return true
	})
	rs.shared.known, rs.agenda.unmet, rs.shared.current, rs.shared.seen = knowsNothing(), nil, false, record.Found{}
	rs.shared.restored.drop(len(rs.shared.restored.all()))
	rs.publish(func(p *progress) { *p = noProgress() })
}

// markChanged marks series whose record must be read again. It makes a series for each name, so that
// the node knows the record if ZooKeeper loses it.
func (rs *Rounds) markChanged(names []string, all bool) {
	for _, name := range names {
		rs.issuer.series.named(name).mark(true)
	}
	if all {
		for _, s := range rs.issuer.series.list() {
			s.mark(false)
		}
	}
}

// mark notes that the record must be read. If the node knows none, it reads only if it was told of the name.
func (s *series) mark(told bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Stale = s.Stale || told || s.known != nil
}

// raiseTime raises the sequence time, if that is due. v is what was read of /cluster and /seq in this round. If another
// write was faster, the next round sees it.
func (rs *Rounds) raiseTime(ctx context.Context, v view) error {
	next, due := rs.shared.known.raisedTime(rs.issuer.cfg.Elapsed.Now())
	slot := rs.issuer.cfg.Tenure.Slot(rs.shared.session)
	if !due || !slot.mayTake() || rs.round().putBackLeft() > 0 {
		return nil
	}
	return rs.writeTimes(ctx, v, next, true, slot.check())
}

// writeTimes writes a state that is as it was read, but for times. If another write was faster, the next round sees it.
// sure: see seqRead.
func (rs *Rounds) writeTimes(ctx context.Context, v view, next record.State, sure bool, checks ...store.Op) error {
	sent := rs.issuer.cfg.Elapsed.Now()
	ops := append(append(v.SetState(next), v.CheckCluster()), checks...)
	err := rs.issuer.cfg.Store.Multi(store.OnSession(ctx, rs.shared.session), ops...)
	if err == nil {
		read := reading{next.Time, sent, v.leader}
		rs.shared.known.learn(next, read, rs.issuer.cfg.Elapsed.Now(), sure)
	}
	if store.Outpaced(err) {
		return nil
	}
	return err
}

// A node may have lost its witness file, but not its journal. Or its witness file is older, because the disk had no
// room for it. A block in the journal shows that the record had a higher next position: perhaps an operator had raised
// it, which no skip covers. So the node puts the record above that block (S35). The skip from there covers what other
// nodes have taken.

// putAboveJournal returns the step that puts the record above the blocks in the journal, if ZooKeeper has lost them. It returns a
// *lostError if nobody has noticed that loss. A record that the node knows better is put back before: see
// series.restore. Mu is held.
func (s *series) putAboveJournal(v view, nonce, by string) (step, error) {
	h := s.journaled
	//mutant:s35-journal-raises-nothing by TestJournalRaisesTheRecord -> if true {
	if h == nil || v.Record.Kind() != record.Sequence || v.Record.ID != h.ID || v.Record.Next >= h.Last.End {
		return step{}, nil
	}
	//mutant:s35-older-witness by TestJournalRaisesTheRecord -> if s.known == nil && v.Incarnation() <= h.Incarnation {
	if v.Incarnation() <= max(h.Incarnation, s.incarnation) {
		return step{}, &lostError{reason: "the record of sequence " + s.Name + " is older than the journal"}
	}
	r := v.Record.Raised(h.Last.End).Written(nonce, by)
	return step{kind: restoreStep, ops: record.SetOps(s.Name, r, v.Stat.Version), done: func(log hclog.Logger) {
		log.Warn("ZooKeeper has lost blocks of a sequence that are in this node's journal. This node has put the next "+
			"position above them", "sequence", s.Name, "next_position", r.Next)
	}}, nil
}

// putAllAboveJournal makes the steps of series.putAboveJournal while the node knows no /seq and waits for the confirming time: nobody
// takes positions yet. v is what was read of /seq. Without it there are no records.
//
// Until all is compared, the node says in its slot that it still compares its records: see Issuer.Followed. It must not
// wait for its peers meanwhile, because they may wait for it.
func (rs *Rounds) putAllAboveJournal(ctx context.Context, v view) error {
	if rs.issuer.journal == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rs.issuer.cfg.Parallel)
	rd, began, left := rs.round(), rs.issuer.now(), false
	for _, s := range rs.issuer.series.list() {
		if v.State == nil || !s.comparesJournal(rs.shared.known.incarnation) {
			continue
		}
		left = true // the next round sees what was done in this one
		group.Go(func() error {
			if rs.issuer.now()-began >= int64(rs.agenda.roundTime) {
				rs.issuer.Wake()
				return nil
			}
			return rd.putOneAboveJournal(ctx, s)
		})
	}
	rs.issuer.journal.comparing.Store(left)
	err := group.Wait()
	if sign := (*lostError)(nil); errors.As(err, &sign) {
		rs.report(sign.reason)
		return nil
	}
	return err
}

// comparesJournal reports whether the record must be compared with the journal, in this incarnation.
func (s *series) comparesJournal(incarnation int64) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.journaled != nil && s.known == nil && s.incarnation < incarnation
}

func (rd round) putOneAboveJournal(ctx context.Context, s *series) error {
	v, err := rd.look(ctx, s, true)
	//mutant:s35-damaged by TestJournalRaisesBesideADamagedRecord -> if false {
	if errors.Is(err, record.ErrDamaged) || errors.Is(err, record.ErrUnknownMode) { // nobody takes positions of it
		s.Mu.Lock()
		s.incarnation = rd.known.incarnation
		s.Mu.Unlock()
		return nil
	}
	if err != nil || v.State == nil || rd.known.finding(v) != record.Good { // the next round sees it
		return err
	}
	s.Mu.Lock()
	st, err := s.putAboveJournal(v, rd.issuer.cfg.Nonce(), rd.issuer.cfg.By)
	if err == nil && st.kind == noStep {
		s.incarnation = v.Incarnation()
	}
	s.Mu.Unlock()
	if err == nil && st.kind != noStep {
		_, err = rd.commit(ctx, s, v, st) // the next round sees whether it was made
	}
	return err
}
