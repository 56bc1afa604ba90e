package seqstore

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed on their boot clocks, so
// it runs no faster than time, and no wall clock matters. Records note it, and the skip after a loss of data
// goes by it.

const (
	// raiseEvery is the age of State.Time after which a node raises it.
	raiseEvery = 10 * time.Second
	// mostRaise is the most by which one write raises it. A node counts on from State.Time by as much at most.
	mostRaise = 15 * time.Second
)

// at returns the sequence time for a node that has known the state for this long.
func (s State) at(passed time.Duration) int64 {
	return s.Time + min(max(passed, 0), mostRaise).Milliseconds()
}

// atMost returns a sequence time that is above all that any node has used until now, ns of the monotonic clock. When the
// read was sent, another node may have been about to raise the time by mostRaise, for what had passed before. And a node that reads
// a raise counts on from there.
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
	sent := i.cfg.Mono()
	ops := append(v.setState(next), v.checkCluster(), hold.check())
	err := i.cfg.Store.Multi(zkstore.OnSession(ctx, i.session), ops...)
	switch {
	case err == nil:
		i.known.learn(next, reading{time: next.Time, mono: sent, leader: v.written}, i.cfg.Mono(), true)
	case outpaced(err):
		err = nil
	}
	return err
}
