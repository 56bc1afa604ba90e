package seq

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed on their boot clocks,
// so it runs no faster than time, and no wall clock matters. Records note it, and the skip after a loss of data goes by
// it.

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

// atMost returns a sequence time that is above all that any node has used until now, ns of AtMost (S24).
// When the read was sent, another node may have been about to raise the time by mostRaise, for what had passed before.
// And a node that reads a raise counts on from there.
func (r reading) atMost(now int64) int64 {
	return r.time + (time.Duration(max(now-r.mono, 0)) + 2*mostRaise).Milliseconds()
}

// now returns the present sequence time.
func (k knowledge) now(mono int64) int64 { return k.state.at(time.Duration(mono - k.first)) }

// raiseTime raises the sequence time, if that is due. v is what was read of /cluster and /seq in this round. If another
// write was faster, the next round sees it. While the cluster has had no sequences, nobody needs the time.
func (i *Issuer) raiseTime(ctx context.Context, cluster ClusterInfo, v view) error {
	age := time.Duration(i.cfg.Mono() - i.known.first)
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

// toPutBack returns the number of records that the node knows and has not compared in this incarnation.
func (i *Issuer) toPutBack() (n int) {
	for _, s := range i.list() {
		s.mu.Lock()
		if s.stale && s.known != nil && s.incarnation < i.known.incarnation {
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
// longer than that to put them back, and the node may be the only one that knows a raised next value.
func (i *Issuer) tellInTime(ctx context.Context, v view, lost int) (told bool, err error) {
	now := i.cfg.Mono()
	late := now-i.known.entered > int64(i.cfg.Follow/2)
	if lost == 0 || !late && lost <= soonPutBack {
		return false, nil
	}
	next := *i.known.state
	next.PutAt = max(next.PutAt+1, i.known.now(now))
	return true, i.raise(ctx, v, next, false)
}

// raise writes a state that is as it was read, but for times. If another write was faster, the next round sees it.
// sure: see knowledge.learn.
func (i *Issuer) raise(ctx context.Context, v view, next State, sure bool, checks ...store.Op) error {
	sent := i.cfg.AtMost()
	ops := append(append(v.setState(next), v.checkCluster()), checks...)
	err := i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
	if err == nil {
		i.known.learn(next, reading{time: next.Time, mono: sent, leader: v.written}, i.cfg.Mono(), i.cfg.AtMost(), sure)
	}
	if outpaced(err) {
		return nil
	}
	return err
}
