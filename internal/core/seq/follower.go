package seq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// What a loss of data is to a node, in the order of time:
//
//  1. A read shows that /cluster, /seq or a record is missing, or older than before: see record.Compare. The node
//     reports it, and package coordinator raises the incarnation (S7).
//  2. The node reads the later incarnation, and is behind: see losses.State. When a heartbeat has followed, it fixes the
//     sequence time that it puts back, by what has passed since its last read, and since the last one that it
//     trusted (S24).
//  3. The first node puts /seq back (State.PutIn), and so does each later one that knows it better. Its time has
//     jumped: State.Jumped. Waits for deleted lives begin anew (S18).
//  4. Each node compares the records that it knows, and puts back what it knows better (S8). While that lasts, it tells
//     so at each heartbeat: State.PutAt. The others note when they have read that.
//  5. When the confirming time has passed since (S9), the node reads all records again, and has settled. Then it takes
//     positions, and has followed all changes (S36).

// follower follows /cluster and /seq for the rounds, and puts back what ZooKeeper has lost of them. It has what all
// sequences of the cluster share.
type follower struct {
	issuer *Issuer
	losses losses.State
	// reported: the node has reported a loss of data in this incarnation.
	reported bool
	// cluster is the one that the node has joined, at the begin of the present round. joined is false before.
	cluster ClusterInfo
	joined  bool
	// session is the present connection to ZooKeeper, 0: none.
	session int64
	// current: this session has followed /seq, and nothing since has shown a loss of data. Else Round must read it
	// before anything else. stateReadAt is the time of that read, ns of AtMost.
	current     bool
	stateReadAt int64
	// seen has /cluster and /seq with their versions, as a round or a renewal last read them. Only renewals go by seen:
	// if this node has written /seq since, the next renewal fails once, and reads both again. All else goes by
	// losses.Known().
	seen record.Snapshot
	// unmarked are the buckets of records whose names are not marked for reading yet: see settle.
	unmarked []string
	spread   time.Duration // see the function spread
	// putBackNames has the records that this node has put back, and that the others have not heard of yet: see
	// tellInTime.
	putBackNames putBackNames
}

// noteConnection notes the cluster, and a new connection: ZooKeeper may have lost the last writes (S12).
func (fo *follower) noteConnection() {
	if session := fo.issuer.cfg.Store.SessionID(); session != fo.session {
		fo.session, fo.current = session, false
		//mutant:s12-new-session by TestNewSessionReadsAllRecordsAgain ->
		fo.issuer.series.markAllStale()
	}
	fo.cluster, fo.joined = fo.issuer.cfg.Tenure.Cluster()
}

// report reports a loss of data, which package coordinator owns (S7).
func (fo *follower) report(found string) {
	if !fo.reported {
		fo.issuer.cfg.Log.Warn("ZooKeeper may have lost data; the records of all sequences will be compared",
			"incarnation", fo.losses.Incarnation(), "found", found)
	}
	fo.reported = true
	//mutant:s7-no-report by TestBlockThatARivalHasTakenIsDropped ->
	fo.issuer.cfg.Tenure.ReportLoss(fo.losses.Incarnation(), found)
}

// follow reads /cluster and /seq, if that is due, and finds the sequences that operators have changed. followed
// means that they were read, and show no loss of data. The first node with a confirmed worker creates /seq.
func (fo *follower) follow(ctx context.Context) (v view, followed bool, err error) {
	if known := fo.losses.Known(); known != nil && known.Cluster != fo.cluster.UUID {
		fo.forgetCluster()
	}
	young := fo.issuer.now()-fo.stateReadAt < int64(fo.issuer.cfg.Pulse.Apart(fo.issuer.cfg.Follow))
	if fo.current && young && !fo.losses.MaySettle(fo.issuer.cfg.Elapsed.Now(), fo.cluster.ConfirmTime) {
		return view{}, false, nil
	}
	for range maxTries {
		slot, sent := fo.issuer.cfg.Tenure.Slot(fo.session), fo.issuer.cfg.Elapsed.Now()
		if v, err = fo.roundIO().lookState(ctx); err != nil {
			return view{}, false, err
		}
		if err := v.CheckUUID(fo.cluster.UUID); err != nil {
			return view{}, false, err
		}
		followed, again, err := fo.compare(ctx, v, sent, slot)
		if err != nil || !again {
			return v, followed, err
		}
	}
	return view{}, false, nil
}

// compare compares /cluster and /seq with what the node knows, and applies them. The read was sent at sent, and slot is
// the node's slot then. again means that they must be read again: this node has written them, or another was faster.
func (fo *follower) compare(
	ctx context.Context, v view, sent timeguard.Moment, slot Slot,
) (followed, again bool, err error) {
	now := fo.issuer.cfg.Elapsed.Now()
	r := fo.losses.Observe(losses.Read{
		Snapshot: v.Snapshot, Leader: v.leader, Sent: sent, Answered: now,
		Confirmed: slot.isConfirmed(), Beat: slot.Incarnation,
	}, fo.cluster.UUID, fo.cluster.ConfirmTime)
	if r.Entered {
		fo.reported = false
		fo.issuer.trace.Step("enters", "inc", fo.losses.Incarnation(), "at", fo.losses.Entered().Boot)
		fo.issuer.series.markAllStale()
	}
	switch r.Kind {
	case losses.ReportsLoss:
		fo.report(record.ClusterPath + " or " + record.StatePath + " is missing, or older than before")
		fo.current = false
	case losses.Waits: // the next heartbeat wakes the Issuer
		fo.current = false
	case losses.WritesState:
		return false, true, fo.writeState(ctx, v, r.Write)
	case losses.Follows:
		fo.issuer.series.markStale(r.Changed)
		fo.seen = v.Snapshot
		fo.issuer.publish((*progress).knowState)
		fo.current, fo.stateReadAt = true, now.Most
	}
	return r.Kind == losses.Follows, false, nil
}

// following returns how far the node has followed the changes if it has read all that /seq tells of, nil if it knows no
// /seq.
func (fo *follower) following() *following {
	known := fo.losses.Known()
	if known == nil {
		return nil
	}
	change := coordinator.Change{Number: known.Changes, Incarnation: fo.losses.Incarnation()}
	return &following{change, fo.session, *known}
}

// settle makes the next rounds mark each name in ZooKeeper for reading, also names that the node does not know. So the
// node reads each record, and has settled (S36). An operator may have raised its next value, or created it again, and
// after a loss of data this node may be the only one left that could know.
func (fo *follower) settle(ctx context.Context) (err error) {
	fo.unmarked, err = fo.issuer.cfg.Store.Children(ctx, record.RecordsDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	fo.issuer.series.markAllStale()
	fo.losses.Settle()
	return nil
}

// markBuckets marks the names in the buckets that settle has found, and reports whether all are marked. After
// most it begins no more buckets, because requests must not wait long. The next round goes on.
func (fo *follower) markBuckets(ctx context.Context, most time.Duration) (all bool, err error) {
	for began := fo.issuer.now(); len(fo.unmarked) > 0 && fo.issuer.now()-began < int64(most); {
		some := fo.unmarked[:min(len(fo.unmarked), fo.issuer.cfg.Parallel)]
		group, ctx := errgroup.WithContext(ctx)
		for _, bucket := range some {
			group.Go(func() error {
				names, err := fo.issuer.cfg.Store.Children(ctx, record.RecordsDir+"/"+bucket)
				if errors.Is(err, store.ErrNoNode) {
					return nil
				}
				for k := range names {
					names[k] = record.NameOf(names[k])
				}
				fo.issuer.series.markStale(names)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
		fo.unmarked = fo.unmarked[len(some):]
	}
	if len(fo.unmarked) > 0 {
		fo.issuer.Wake()
	}
	return len(fo.unmarked) == 0, nil
}

// toPutBack returns the number of records that the node knows, or of which it has blocks in its journal, and that it
// has not read in this incarnation. Damaged ones that it has read do not count.
func (fo *follower) toPutBack() (n int) {
	if fo.losses.HasSettled() {
		return 0
	}
	for _, s := range fo.issuer.series.list() {
		s.Mu.Lock()
		if s.Stale && (s.Known != nil || s.journaled != nil) && s.incarnation < fo.losses.Incarnation() {
			n++
		}
		s.Mu.Unlock()
	}
	return n
}

// tellInTime tells at each heartbeat that the node still puts records back, and which it has put back: see
// losses.State.Tells. Nobody takes positions before the confirming time has passed since the last time: with many
// records it takes longer than that to put them back, and the node may be the only one that knows a raised next value.
func (fo *follower) tellInTime(ctx context.Context, v view, lost int) (told bool, err error) {
	names := fo.putBackNames.all()
	next, due := fo.losses.Tells(lost, names, fo.issuer.cfg.Elapsed.Now(), fo.issuer.cfg.Follow)
	if !due {
		return false, nil
	}
	made, err := fo.amendState(ctx, v, next, false)
	if made { // else the next round tells it
		fo.putBackNames.drop(len(names))
	}
	return true, err
}

// noteSpread sets spread, by the series of which this node takes blocks.
func (fo *follower) noteSpread(all []*series) {
	var used int64
	for _, s := range all {
		s.Mu.Lock()
		if s.Issuing != nil && s.Issuing.TakesAhead() {
			used++
		}
		s.Mu.Unlock()
	}
	fo.spread = spread(used, int64(fo.cluster.Nodes))
}

// putBackNames are the names of records that the node has put back.
type putBackNames struct {
	mu    sync.Mutex
	names []string
}

func (r *putBackNames) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *putBackNames) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[:len(r.names):len(r.names)]
}

// drop drops the first n names.
func (r *putBackNames) drop(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = slices.Clone(r.names[n:]) // a loss may have left a million names
}

// writeState writes /seq, or creates it, unless another write was faster.
func (fo *follower) writeState(ctx context.Context, v view, st record.State) error {
	ops := []store.Op{v.CheckClusterOp(), store.CreateOp{Path: record.StatePath, Data: st.Marshal()}}
	if v.State != nil {
		ops = append(ops[:1], v.SetStateOps(st)...)
	}
	err := fo.issuer.cfg.Store.Multi(store.OnSession(ctx, fo.session), ops...)
	if store.Outpaced(err) {
		return nil
	}
	return err
}

// forgetCluster drops all that the node knows, because it has joined another cluster.
func (fo *follower) forgetCluster() {
	fo.issuer.series.remove(func(s *series) bool {
		s.change(func() { s.clearRecord(longAgoNs); s.forgotten.Store(true) })
		return true
	})
	fo.losses, fo.reported, fo.unmarked, fo.current, fo.seen = losses.New(), false, nil, false, record.Snapshot{}
	fo.putBackNames.drop(len(fo.putBackNames.all()))
	fo.issuer.publish((*progress).leaveCluster)
}

// raiseTime raises the sequence time, if that is due. v has /cluster and /seq as they were read in this round. If
// another write was faster, the next round sees it.
func (fo *follower) raiseTime(ctx context.Context, v view) error {
	next, due := fo.losses.RaisedTime(fo.issuer.cfg.Elapsed.Now())
	slot := fo.issuer.cfg.Tenure.Slot(fo.session)
	if !due || !slot.isConfirmed() || fo.roundIO().putBackLeft() > 0 {
		return nil
	}
	_, err := fo.amendState(ctx, v, next, true, slot.check())
	return err
}

// amendState writes a state that is as it was read, but for times and for the records that this node has put back: they
// count as changes. It is not made if another write was faster: the next round sees that. trusted: see
// losses.State.Learn.
func (fo *follower) amendState(
	ctx context.Context, v view, next record.State, trusted bool, checks ...store.Op,
) (made bool, err error) {
	sent := fo.issuer.cfg.Elapsed.Now()
	ops := append(append(v.SetStateOps(next), v.CheckClusterOp()), checks...)
	err = fo.issuer.cfg.Store.Multi(store.OnSession(ctx, fo.session), ops...)
	if err == nil {
		read := losses.Reading{Time: next.Time, Sent: sent, Leader: v.leader}
		fo.losses.Learn(next, read, fo.issuer.cfg.Elapsed.Now(), trusted)
	}
	if store.Outpaced(err) {
		return false, nil
	}
	return err == nil, err
}
