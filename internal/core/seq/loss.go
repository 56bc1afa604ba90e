package seq

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// What a loss of data is to a node, in the order of time:
//
//  1. A read shows that /cluster, /seq or a record is missing, or older than before: see judge. The node reports it,
//     and package coordinator raises the incarnation (S7).
//  2. The node reads the later incarnation: knowledge.entered. When a heartbeat has followed, it fixes the sequence
//     time that it puts back, by what has passed since the last read that it was sure of: knowledge.least,
//     knowledge.sure (S24).
//  3. One node puts /seq back: State.PutIn. Its time has jumped: State.Jumped. Waits for deleted lives begin anew
//     (S18).
//  4. Each node compares the records that it knows, and puts back what it knows better (S8). While that lasts, it
//     tells so at each heartbeat: State.PutAt. The others note when they have read that: knowledge.putAt.
//  5. When the confirming time has passed since the later of entered and putAt (S9), the node reads all records again:
//     knowledge.met. Then it takes positions, and has followed all changes (S36).

// never is the incarnation of a node that has not read /cluster.
const never = -1

// knowledge is what a node knows of /cluster and /seq.
type knowledge struct {
	// incarnation is the highest one of /cluster that the node has seen, never before. entered is when the node
	// first saw it. The zero value: nobody has lost data.
	incarnation int64
	entered     timeguard.Moment
	// state is /seq as it was last read, nil before. Its incarnation is below the one above until the node has put back
	// what it knows better.
	state *State
	// first is when the node had read the present State.Time first, in ns of AtLeast.
	first int64
	// sure is the last read that was sent while the node might take positions: its heartbeats had shown no loss until
	// then. A read after a restart may be of older data. last is the last read, sure or not: in one incarnation several
	// nodes may put the time back, the later ones further.
	sure, last reading
	// least is the sequence time that the node puts back in this incarnation, 0 while no heartbeat has followed.
	least int64
	// reported: the node has reported a loss of data in this incarnation.
	reported bool
	// putAt is when the node first read the present State.PutAt. The zero value: that is long ago.
	putAt timeguard.Moment
	// met: the node has begun to read all records since others have put back what they know better (S36).
	met bool
}

// reading is a read of /seq.
type reading struct {
	// Time was the sequence time, and Sent is when the read was sent.
	Time int64            `json:"time"`
	Sent timeguard.Moment `json:"sent"`
	// Leader was a time of ZooKeeper's leader before, Unix ms. 0: not known.
	Leader int64 `json:"leader"`
}

// learn takes over a state, from a read that was answered at this time. sure: see above.
func (k *knowledge) learn(st State, read reading, answered timeguard.Moment, sure bool) {
	if k.state == nil || k.state.Time != st.Time {
		k.first = answered.Least
	}
	if k.hearsOfPutBack(st) {
		//mutant:s36-put-back-late by TestNodeReadsAgainWhatIsPutBackLate -> k.putAt = answered
		k.putAt, k.met = answered, false
	}
	if sure || k.state == nil || k.owes() {
		k.sure = read
	}
	k.state, k.last = &st, read
}

// hearsOfPutBack reports whether st says that a node still puts records back, and the node has not read that before.
func (k *knowledge) hearsOfPutBack(st State) bool {
	if k.state != nil {
		return st.PutAt != k.state.PutAt
	}
	return st.PutAt != 0 && st.Time-st.PutAt < putsBackFor.Milliseconds()
}

// enter notes a later incarnation.
func (k *knowledge) enter(incarnation int64, now timeguard.Moment) {
	if incarnation > 0 {
		k.entered = now
	}
	//mutant:s36-read-before by TestFollowedCountsForOneSession -> k.incarnation, k.reported, k.least = incarnation, false, 0
	k.incarnation, k.reported, k.least, k.met = incarnation, false, 0, false
}

// owes reports whether the node has not compared /seq in this incarnation.
func (k knowledge) owes() bool { return k.state != nil && k.state.Incarnation < k.incarnation }

// judge says what /cluster and /seq show, as they were read after a sync.
func (k knowledge) judge(v view) finding {
	switch {
	case v.incarnation() < k.incarnation:
		return foundLost
	case v.incarnation() > k.incarnation:
		return foundLater
	case v.state == nil && k.state == nil:
		return foundAbsent
	case k.state == nil, k.owes():
		return foundGood
	case v.state == nil, v.state.older(*k.state):
		return foundLost
	}
	return foundGood
}

// older reports whether s was written before other, in one incarnation.
func (s State) older(other State) bool { return s.Changes < other.Changes || s.Time < other.Time }

// putBackState returns the state that a node writes after a loss of data: what it knows, with the time least. due is
// false if a node has put back the state in this incarnation, and found lacks nothing. found is nil if there is no
// state.
func putBackState(found *State, known State, incarnation, least int64) (next State, due bool) {
	next = known
	next.Time, next.PutIn = max(next.Time, least), incarnation
	if found == nil {
		next.Jumped = next.Time
		return next, true
	}
	next.PutAt = max(next.PutAt, found.PutAt)
	if found.Changes > next.Changes {
		next.Changes, next.Changed, next.ChangedAt = found.Changes, found.Changed, found.ChangedAt
	}
	next.Purged, next.Time = max(next.Purged, found.Purged), max(next.Time, found.Time)
	next.Jumped = next.Time
	lacks := next.Changes > found.Changes || next.Purged > found.Purged || next.Time > found.Time
	return next, lacks || found.PutIn < incarnation
}

// report reports a loss of data, which package coordinator owns (S7).
func (i *Issuer) report(found string) {
	if !i.known.reported {
		i.cfg.Log.Warn("ZooKeeper may have lost data; the records of all sequences will be compared",
			"incarnation", i.known.incarnation, "found", found)
	}
	i.known.reported = true
	//mutant:s7-no-report by TestBlockThatARivalHasTakenIsDropped ->
	i.cfg.Tenure.ReportLoss(i.known.incarnation, found)
}

// follow reads /cluster and /seq, if that is due, and finds the sequences that operators have changed. followed
// means that they were read, and show no loss of data. The first node with a confirmed worker creates /seq.
func (i *Issuer) follow(ctx context.Context, cluster ClusterInfo) (v view, followed bool, err error) {
	if i.known.state != nil && i.known.state.Cluster != cluster.UUID {
		i.forgetCluster()
	}
	if i.follows != 0 && !i.mustMeet(cluster) && i.now()-i.follows < int64(i.cfg.Pulse.Apart(i.cfg.Follow)) {
		return view{}, false, nil
	}
	for range maxConflicts {
		hold, sent := i.cfg.Tenure.Hold(i.session), i.cfg.Elapsed.Now()
		if v, err = i.look(ctx, nil, false); err != nil {
			return view{}, false, err
		}
		if err := v.belongs(cluster.UUID); err != nil {
			return view{}, false, err
		}
		followed, again, err := i.compare(ctx, cluster, v, sent, hold)
		if err != nil || !again {
			return v, followed, err
		}
	}
	return view{}, false, nil
}

// belongs returns an error if what was read is another cluster's.
func (v found) belongs(uuid string) error {
	path, of := clusterPath, uuid
	if v.cluster != nil {
		of = v.cluster.UUID
	}
	if v.state != nil && of == uuid {
		path, of = statePath, v.state.Cluster
	}
	if of != uuid {
		const text = "%s belongs to cluster %s, and this node to cluster %s. Remove it, or use another cluster name"
		return fmt.Errorf(text, path, of, uuid)
	}
	return nil
}

// compare compares /cluster and /seq with what the node knows, and takes them over. sent is when the read was sent, and
// hold the node's slot then. again means that they must be read again: this node has written them, or another was
// faster.
func (i *Issuer) compare(
	ctx context.Context, cluster ClusterInfo, v view, sent timeguard.Moment, hold Hold,
) (followed, again bool, err error) {
	now, k := i.cfg.Elapsed.Now(), &i.known
	switch k.judge(v) {
	case foundLost:
		i.report(clusterPath + " or " + statePath + " is missing, or older than before")
		i.follows = 0
		return false, false, nil
	case foundLater:
		k.enter(v.incarnation(), now)
		i.trace.Step("enters", "inc", k.incarnation, "at", k.entered.Boot)
		i.markChanged(nil, true)
	}
	switch {
	case k.state == nil && (v.state == nil || v.state.PutIn < v.incarnation()):
		if i.unconfirmed(cluster) > 0 { // others may know more
			return false, false, nil
		}
		return false, true, i.writeState(ctx, v, putBackUnknown(v, cluster))
	case k.state == nil:
	case k.owes() && !k.fixLeast(now, v.leader, hold): // the next heartbeat wakes the Issuer
		i.follows = 0
		return false, false, nil
	case k.owes():
		if next, due := putBackState(v.state, *k.state, v.incarnation(), k.least); due {
			return false, true, i.writeState(ctx, v, next)
		}
	default: // follow the changes of operators (S28)
		//mutant:s28-no-follow by TestNameCreatedAgainWithAHigherStart -> names, all := []string(nil), false
		names, all := v.state.since(k.state.Changes)
		i.markChanged(names, false)
		k.met = k.met && !all
	}
	i.seen = v
	i.informed.Store(true)
	k.learn(*v.state, reading{v.state.Time, sent, v.leader}, now, hold.mayTake())
	i.follows = now.Most
	return true, false, nil
}

// putBackUnknown returns the state that a node writes when the confirming time is over and nobody has put the state
// back. It knows none of its own. The data may be older by what has passed on the clock of ZooKeeper's leader since the
// state was written. The node's last heartbeat is of this incarnation, so no data that were lost are later.
func putBackUnknown(v view, cluster ClusterInfo) State {
	if v.state == nil {
		return State{Cluster: cluster.UUID, PutIn: v.incarnation()}
	}
	next := *v.state
	next.Time += max(0, v.leader-v.written) + 2*mostRaise.Milliseconds()
	next.Jumped, next.PutIn = next.Time, v.incarnation()
	return next
}

// mustMeet reports whether the node must read all records now: it has not since it began, since it could count the
// changes of operators, or since others have put back what they know better (S36). A record that this node has put back
// itself may be another one by now.
func (i *Issuer) mustMeet(cluster ClusterInfo) bool {
	return !i.known.met && i.known.state != nil && i.putBackLeft(cluster) == 0
}

// meetAll makes the next rounds meet all names that there are, so that the node learns each record. An operator may
// have raised its next value, or created it again, and after a loss of data this node may be the only one left that
// could know.
func (i *Issuer) meetAll(ctx context.Context) (err error) {
	i.unmet, err = i.cfg.Store.Children(ctx, recordsDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	i.markChanged(nil, true)
	i.known.met = true
	return nil
}

// meetMore marks the names in some of the buckets that meetAll has found, and reports whether that were all. Requests
// must not wait long for it.
func (i *Issuer) meetMore(ctx context.Context) (all bool, err error) {
	for began := i.now(); len(i.unmet) > 0 && i.now()-began < int64(i.roundTime/2); {
		some := i.unmet[:min(len(i.unmet), i.cfg.Parallel)]
		group, ctx := errgroup.WithContext(ctx)
		for _, bucket := range some {
			group.Go(func() error {
				names, err := i.cfg.Store.Children(ctx, recordsDir+"/"+bucket)
				if errors.Is(err, store.ErrNoNode) {
					return nil
				}
				for k := range names {
					names[k] = nameOf(names[k])
				}
				i.markChanged(names, false)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
		i.unmet = i.unmet[len(some):]
	}
	if len(i.unmet) > 0 {
		i.Wake()
	}
	return len(i.unmet) == 0, nil
}

// writeState writes /seq, or creates it, unless another write was faster.
func (i *Issuer) writeState(ctx context.Context, v view, st State) error {
	ops := []store.Op{v.checkCluster(), store.CreateOp{Path: statePath, Data: st.marshal()}}
	if v.state != nil {
		ops = append(ops[:1], v.setState(st)...)
	}
	err := i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
	if outpaced(err) {
		return nil
	}
	return err
}

// forgetCluster drops all that the node knows, because it has joined another cluster.
func (i *Issuer) forgetCluster() {
	i.remove(func(s *series) bool {
		s.change(func() { s.vanish(0); s.forgotten.Store(true) })
		return true
	})
	i.known, i.unmet, i.follows = knowledge{incarnation: never}, nil, 0
	i.restored.drop(len(i.restored.all()))
	i.followed.Store(nil)
	i.compared.Store(nil)
	i.informed.Store(false)
}

// markChanged marks series whose record must be read again. It makes a series for each name, so that
// the node knows the record if ZooKeeper loses it.
func (i *Issuer) markChanged(names []string, all bool) {
	for _, name := range names {
		i.named(name).mark(true)
	}
	if all {
		for _, s := range i.list() {
			s.mark(false)
		}
	}
}

// mark notes that the record must be read. If the node knows none, it reads only if it was told of the name.
func (s *series) mark(told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = s.stale || told || s.known != nil
}
