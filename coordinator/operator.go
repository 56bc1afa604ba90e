package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// Operator has the commands of an operator on a cluster's records. Its methods follow the same protocol as nodes. So no
// ID is issued twice, although holders act at the same time. Each method returns a *ClocksError if the clock of this
// machine cannot be trusted. Thaw is a function, and asks no clock.
type Operator struct {
	Store store.Store
	// Now is our clock in Unix milliseconds.
	Now func() int64
	// By is the operator's name, for the records.
	By string
}

// ClocksError: our clock differs by more than limits.ClocksAgree from the leader's. So it cannot tell whether a lease
// has ended.
type ClocksError struct{ Ahead time.Duration }

func (e *ClocksError) Error() string {
	way := "ahead of"
	if e.Ahead < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s that of ZooKeeper's leader, so it cannot tell "+
		"whether a lease has expired. Set the clock right, or run this on another machine", e.Ahead.Abs(), way)
}

// moment is the present time by two clocks that agree, ours and the leader's: the earlier and the later of them, Unix
// ms.
type moment struct{ early, late int64 }

// begin reads the cluster's record and the time.
func (o Operator) begin(ctx context.Context) (Cluster, moment, error) {
	cl, err := ReadCluster(ctx, o.Store)
	if err != nil {
		return cl, moment{}, err
	}
	r, err := o.leader(ctx)
	if err != nil {
		return cl, moment{}, err
	}
	if off, uncertain := r.ahead(), (r.Acked-r.Sent)/2; off-uncertain > clocksAgree || off+uncertain < -clocksAgree {
		return cl, moment{}, &ClocksError{time.Duration(off) * time.Millisecond}
	}
	now := o.Now()
	leader := r.leaderNow(now)
	return cl, moment{min(now, leader), max(now, leader+r.Acked-r.Sent)}, nil
}

// leader compares our clock with the leader's by creating an ephemeral record. Its name is not that of a worker's lock.
func (o Operator) leader(ctx context.Context) (Reading, error) {
	path := livePath + "/clock-" + randomNonce()
	sent := o.Now()
	_, err := o.Store.Create(ctx, path, nil, store.Ephemeral)
	if errors.Is(err, store.ErrNoNode) {
		if err = ensureRoot(ctx, o.Store); err == nil {
			return o.leader(ctx)
		}
	}
	acked := o.Now()
	if err != nil {
		return Reading{}, err
	}
	_, stat, err := o.Store.Get(ctx, path)
	if err == nil {
		err = o.Store.Delete(ctx, path, stat.Version)
	}
	return Reading{Sent: sent, Acked: acked, Stamp: stat.Ctime}, err
}
