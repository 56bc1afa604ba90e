package losses

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed at least, so it runs no
// faster than time. Records note it, and the skip after a loss of data goes by it.

// RaiseEvery is the age of record.State.Time after which a node raises it.
const RaiseEvery = 10 * time.Second

// Reading has the numbers of a read of /seq by which a node finds a later sequence time.
type Reading struct {
	// Time was the sequence time, and the read was sent at Sent. Leader was a time of ZooKeeper's leader before, Unix
	// ms.
	Time   int64            `json:"time"`
	Sent   timeguard.Moment `json:"sent"`
	Leader int64            `json:"leader"`
}

// atMost returns a sequence time that is above all that any node has used until now (S24). leader is a time of
// ZooKeeper's leader since, Unix ms. When the read was sent, another node may have been about to raise the time by
// record.MostRaise, for what had passed before. And a node that reads a raise counts on from there.
func (r Reading) atMost(now timeguard.Moment, leader int64) int64 {
	//mutant:s24-at-least by TestTimeIsPutBackByThreeClocks -> passed := time.Duration(now.Least - r.Sent.Least).Milliseconds()
	passed := time.Duration(now.Most - r.Sent.Most).Milliseconds()
	//mutant:s24-leader-not-asked by TestTimeIsPutBackByThreeClocks ->
	passed = max(passed, leader-r.Leader)
	return r.Time + max(passed, 0) + 2*record.MostRaise.Milliseconds()
}

// SeqTime returns the present sequence time. least is the time of AtLeast.
func (k State) SeqTime(least int64) int64 {
	return k.seq().state.At(time.Duration(least - k.seq().first))
}

// RaisedTime returns /seq with the present sequence time. due is false if its time is young, or if nobody needs the
// time: the cluster has had no sequences.
func (k State) RaisedTime(now timeguard.Moment) (next record.State, due bool) {
	//mutant:s23-at-most by internal/core/seq:TestFastBootClock -> age := time.Duration(now.Most - k.seq().first)
	age := time.Duration(now.Least - k.seq().first)
	next = k.seq().state
	next.Time = next.At(age)
	return next, age >= RaiseEvery && next.Changes > 0
}
