package seq

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed at least, so it runs no
// faster than time. Records note it, and the skip after a loss of data goes by it.

// raiseEvery is the age of State.Time after which a node raises it.
const raiseEvery = 10 * time.Second

// reading is a read of /seq.
type reading struct {
	// Time was the sequence time, and Sent is when the read was sent. Leader was a time of ZooKeeper's leader before, Unix
	// ms.
	Time   int64            `json:"time"`
	Sent   timeguard.Moment `json:"sent"`
	Leader int64            `json:"leader"`
}

// atMost returns a sequence time that is above all that any node has used until now (S24). leader is a time of
// ZooKeeper's leader since, Unix ms. When the read was sent, another node may have been about to raise the time by
// record.MostRaise, for what had passed before. And a node that reads a raise counts on from there.
func (r reading) atMost(now timeguard.Moment, leader int64) int64 {
	//mutant:s24-at-least by TestTimeIsPutBackByThreeClocks -> passed := time.Duration(now.Least - r.Sent.Least).Milliseconds()
	passed := time.Duration(now.Most - r.Sent.Most).Milliseconds()
	//mutant:s24-leader-not-asked by TestTimeIsPutBackByThreeClocks ->
	passed = max(passed, leader-r.Leader)
	return r.Time + max(passed, 0) + 2*record.MostRaise.Milliseconds()
}

// now returns the present time of AtMost.
func (i *Issuer) now() int64 { return i.cfg.Elapsed.AtMost() }

// now returns the present sequence time. least is the time of AtLeast.
func (k knowledge) now(least int64) int64 {
	return k.seq().state.At(time.Duration(least - k.seq().first))
}

// raisedTime returns /seq with the present sequence time. due is false if its time is young, or if nobody needs the
// time: the cluster has had no sequences.
func (k knowledge) raisedTime(now timeguard.Moment) (next record.State, due bool) {
	//mutant:s23-at-most by TestFastBootClock -> age := time.Duration(now.Most - k.seq().first)
	age := time.Duration(now.Least - k.seq().first)
	next = k.seq().state
	next.Time = next.At(age)
	return next, age >= raiseEvery && next.Changes > 0
}

// raiseTime raises the sequence time, if that is due. v is what was read of /cluster and /seq in this round. If another
// write was faster, the next round sees it.
func (i *Rounds) raiseTime(ctx context.Context, cluster ClusterInfo, v view) error {
	next, due := i.known.raisedTime(i.cfg.Elapsed.Now())
	hold := i.cfg.Tenure.Hold(i.session)
	if !due || !hold.mayTake() || i.putBackLeft(cluster) > 0 {
		return nil
	}
	return i.raise(ctx, v, next, true, hold.check())
}

// raise writes a state that is as it was read, but for times. If another write was faster, the next round sees it.
// sure: see seqRead.
func (i *Rounds) raise(ctx context.Context, v view, next record.State, sure bool, checks ...store.Op) error {
	sent := i.cfg.Elapsed.Now()
	ops := append(append(v.SetState(next), v.CheckCluster()), checks...)
	err := i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
	if err == nil {
		read := reading{next.Time, sent, v.leader}
		i.known.learn(next, read, i.cfg.Elapsed.Now(), sure)
	}
	if store.Outpaced(err) {
		return nil
	}
	return err
}
