package seq

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed at least, so it runs no
// faster than time. Records note it, and the skip after a loss of data goes by it.

const (
	// raiseEvery is the age of State.Time after which a node raises it.
	raiseEvery = 10 * time.Second
	// mostRaise is the most by which one write raises it. A node counts on from State.Time by as much at most.
	mostRaise = 15 * time.Second
)

// at returns the sequence time for a node that has known the state for this long (S23).
func (s State) at(passed time.Duration) int64 {
	//mutant:s23-raise by TestTimeIsPutBackAboveRaisesAfterAPause -> return s.Time + max(passed, 0).Milliseconds()
	return s.Time + min(max(passed, 0), mostRaise).Milliseconds()
}

// atMost returns a sequence time that is above all that any node has used until now (S24). leader is a time of
// ZooKeeper's leader since, Unix ms. When the read was sent, another node may have been about to raise the time by
// mostRaise, for what had passed before. And a node that reads a raise counts on from there.
func (r reading) atMost(now timeguard.Moment, leader int64) int64 {
	//mutant:s24-at-least by TestTimeIsPutBackByThreeClocks -> passed := time.Duration(now.Least - r.Sent.Least).Milliseconds()
	passed := time.Duration(now.Most - r.Sent.Most).Milliseconds()
	if r.Leader != 0 {
		//mutant:s24-leader-not-asked by TestTimeIsPutBackByThreeClocks ->
		passed = max(passed, leader-r.Leader)
	}
	return r.Time + max(passed, 0) + 2*mostRaise.Milliseconds()
}

// fixLeast fixes the sequence time that the node puts back, and reports whether it could. The leader must have stamped
// a heartbeat since the incarnation has grown: a machine that stood still may know by nothing else how long that was.
// now is a moment since then, and leader a time of ZooKeeper's leader since that heartbeat.
func (k *knowledge) fixLeast(now timeguard.Moment, leader int64, hold Hold) bool {
	//mutant:s24-before-a-heartbeat by TestTimeIsPutBackByThreeClocks -> if k.least == 0 {
	if k.least == 0 && hold.Incarnation >= k.incarnation {
		//mutant:s24-time-as-read by TestTimeIsPutBackByThreeClocks -> k.least = k.state.Time
		k.least = max(k.sure.atMost(now, leader), k.last.atMost(now, leader))
	}
	return k.least != 0
}

// now returns the present time of AtMost.
func (i *Issuer) now() int64 { return i.cfg.Elapsed.AtMost() }

// now returns the present sequence time. least is the time of AtLeast.
func (k knowledge) now(least int64) int64 { return k.state.at(time.Duration(least - k.first)) }

// raiseTime raises the sequence time, if that is due. v is what was read of /cluster and /seq in this round. If another
// write was faster, the next round sees it. While the cluster has had no sequences, nobody needs the time.
func (i *Issuer) raiseTime(ctx context.Context, cluster ClusterInfo, v view) error {
	//mutant:s23-at-most by TestFastBootClock -> age := time.Duration(i.cfg.Elapsed.AtMost() - i.known.first)
	age := time.Duration(i.cfg.Elapsed.AtLeast() - i.known.first)
	if age < raiseEvery || i.known.state.Changes == 0 || i.unconfirmed(cluster) > 0 {
		return nil
	}
	hold := i.cfg.Tenure.Hold(i.session)
	if !hold.mayTake() {
		return nil
	}
	next := *i.known.state
	next.Time = next.at(age)
	return i.raise(ctx, v, next, true, hold.check())
}

// putsBackFor is how long after State.PutAt, in sequence time, a node that has just started takes it for possible that
// another one still puts records back.
const putsBackFor = time.Minute

// soonPutBack is the number of records that a node usually puts back in its first round, so that it need not tell
// before.
const soonPutBack = 64

// toPutBack returns the number of records that the node knows and has not compared in this incarnation. Those that it
// still lacks when it has met all cannot be used.
func (i *Issuer) toPutBack() (n int) {
	if i.known.met {
		return 0
	}
	for _, s := range i.list() {
		s.mu.Lock()
		if s.stale && (s.known != nil || s.journaled != nil) && s.incarnation < i.known.incarnation {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// boundRounds makes rounds short while something must be done between them: leases be renewed, or others be told in
// time that the node still has so many records to put back.
func (i *Issuer) boundRounds(cluster ClusterInfo, lost int) {
	i.roundTime = longestRound
	if i.relay.inUse.Load() {
		i.roundTime = MinLease / 4
	}
	if lost > 0 && cluster.ConfirmTime > 0 {
		i.roundTime = min(i.roundTime, cluster.ConfirmTime/4)
	}
}

// tellInTime tells at each heartbeat that the node still puts records back (S9), unless it has just begun with few of
// them. Nobody takes positions before the confirming time has passed since the last time: with many records it takes
// longer than that to put them back, and the node may be the only one that knows a raised next value. The records that
// the node has put back count as changes, so that the others read them, also if it came when their time was over (S36).
func (i *Issuer) tellInTime(ctx context.Context, v view, lost int) (told bool, err error) {
	now, names := i.cfg.Elapsed.Now(), i.restored.all()
	late := now.Most-i.known.entered.Most > int64(i.cfg.Follow/2)
	puts := lost > 0 && (late || lost > soonPutBack)
	if !puts && len(names) == 0 {
		return false, nil
	}
	//mutant:s36-unheard by TestNodesHearOfALatePutBack -> next := *i.known.state
	next := i.known.state.after(names...)
	if puts {
		next.PutAt = max(next.PutAt+1, i.known.now(now.Least))
	}
	err = i.raise(ctx, v, next, false)
	if i.known.state.Changes == next.Changes { // else the next round tells it
		i.restored.drop(len(names))
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

// raise writes a state that is as it was read, but for times. If another write was faster, the next round sees it.
// sure: see knowledge.learn.
func (i *Issuer) raise(ctx context.Context, v view, next State, sure bool, checks ...store.Op) error {
	sent := i.cfg.Elapsed.Now()
	ops := append(append(v.setState(next), v.checkCluster()), checks...)
	err := i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
	if err == nil {
		read := reading{next.Time, sent, v.leader}
		i.known.learn(next, read, i.cfg.Elapsed.Now(), sure)
	}
	if outpaced(err) {
		return nil
	}
	return err
}
