package coordinator

import (
	"context"
	"sort"
	"time"
)

// steadyTimes is how many settling times old the evidence must be.
const steadyTimes = 10

// settling is how long a new holder of a slot has to wait, counted from its
// write: the time that an owner whom ZooKeeper has forgotten gets to come
// back. 0 when ZooKeeper is known to have lost nothing lately: a record is
// there that was written under the same leader's epoch and is much older than
// a settling time. A restored or wiped ensemble begins a new epoch; a
// standalone server has none (0), so there it is never known.
func (c *Coordinator) settling(ctx context.Context, cl Cluster, worker int) (time.Duration, error) {
	_, stat, err := c.slot(ctx, worker)
	if err != nil {
		return 0, err
	}
	epoch := stat.epoch()
	if epoch == 0 {
		return settlingTime(cl), nil
	}
	evidence := func(zxid, at int64) bool {
		return zxid>>32 == epoch && stat.Mtime-at >= steadyTimes*cl.SettleMs
	}
	_, clStat, err := c.cluster(ctx)
	if err != nil {
		return 0, err
	}
	if evidence(clStat.Czxid, clStat.Ctime) || evidence(clStat.Mzxid, clStat.Mtime) {
		return 0, nil
	}
	// Tickets are listed in the order of their making, so the oldest of this
	// epoch is found by halving. Where the numbers began again the search may
	// miss it, which costs a wait and nothing else.
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil {
		return 0, err
	}
	read := func(i int) Stat {
		_, s, gerr := c.Store.Get(ctx, ticketsPath+"/"+names[i])
		if gerr != nil {
			return Stat{} // deleted meanwhile: as if of an older epoch
		}
		return s
	}
	i := sort.Search(len(names), func(i int) bool { return read(i).Czxid>>32 >= epoch })
	if i < len(names) {
		if s := read(i); evidence(s.Czxid, s.Ctime) {
			return 0, nil
		}
	}
	return settlingTime(cl), nil
}

func settlingTime(cl Cluster) time.Duration { return time.Duration(cl.SettleMs) * time.Millisecond }
