package coordinator

import (
	"context"
	"sort"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// steadyTimes is how many settling times old the evidence must be.
const steadyTimes = 10

// settling is how long a new holder of a slot has to wait, counted from its
// write: the time that an owner whom ZooKeeper has forgotten gets to come
// back. 0 when ZooKeeper is known to have lost nothing lately; what cannot be
// read is not known.
func (c *Coordinator) settling(ctx context.Context, cl Cluster, worker int) time.Duration {
	if steady, err := c.steady(ctx, cl, worker); err == nil && steady {
		return 0
	}
	return settlingTime(cl)
}

// steady tells that a record is there that was written under the same leader's
// epoch as the slot, and is much older than a settling time. A restored or
// wiped ensemble begins a new epoch; a standalone server has none (0), so
// there it is never known.
func (c *Coordinator) steady(ctx context.Context, cl Cluster, worker int) (bool, error) {
	v, err := c.readView(ctx, worker)
	stat, clStat := v.stat, v.clStat
	if err != nil || stat.Epoch() == 0 {
		return false, err
	}
	evidence := func(zxid, at int64) bool {
		return zxid>>32 == stat.Epoch() && stat.Mtime-at >= steadyTimes*cl.SettleMs
	}
	if stat.Mtime-clStat.Ctime < steadyTimes*cl.SettleMs {
		return false, nil // a new cluster, or one that has just been lost: owners may be on their way
	}
	if evidence(clStat.Czxid, clStat.Ctime) || evidence(clStat.Mzxid, clStat.Mtime) {
		return true, nil
	}
	// Tickets are listed in the order of their making, so the oldest of this
	// epoch is found by halving. Where the numbers began again the search may
	// miss it, which costs a wait and nothing else.
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil {
		return false, err
	}
	read := func(i int) zkstore.Stat {
		_, s, gerr := c.Store.Get(ctx, ticketsPath+"/"+names[i])
		if gerr != nil {
			return zkstore.Stat{} // deleted meanwhile: as if of an older epoch
		}
		return s
	}
	i := sort.Search(len(names), func(i int) bool { return read(i).Czxid>>32 >= stat.Epoch() })
	if i == len(names) {
		return false, nil
	}
	s := read(i)
	return evidence(s.Czxid, s.Ctime), nil
}

func settlingTime(cl Cluster) time.Duration {
	if cl.SettleMs == 0 {
		return 0
	}
	// An owner that is forgotten and gone has issued until then, and borrowed.
	return time.Duration(cl.SettleMs+cl.BorrowMs) * time.Millisecond
}
