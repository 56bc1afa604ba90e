package coordinator

import (
	"context"
	"sort"
	"time"

	"github.com/flaked/flaked/internal/zkstore"
)

// steadyTimes is the least age of the evidence for steady, in confirming times.
const steadyTimes = 10

// confirmWait returns the time that a new holder of a slot must wait after its write. In this
// time a holder that ZooKeeper has lost can come back. It is 0 if the records prove that
// ZooKeeper has lost nothing lately. If they cannot be read, nothing is proved.
func (c *Coordinator) confirmWait(ctx context.Context, cl Cluster, worker int) time.Duration {
	if steady, err := c.steady(ctx, cl, worker); err == nil && steady {
		return 0
	}
	return confirmTime(cl)
}

// steady reports whether ZooKeeper has a record that was written in the same leader epoch
// as the slot, at least steadyTimes confirming times earlier. A restored or wiped ensemble
// begins a new epoch. A standalone server has no epochs (0), so steady is always false.
func (c *Coordinator) steady(ctx context.Context, cl Cluster, worker int) (bool, error) {
	v, err := c.readView(ctx, worker)
	stat, clStat := v.stat, v.clStat
	if err != nil || stat.Epoch() == 0 {
		return false, err
	}
	evidence := func(zxid, at int64) bool {
		return zxid>>32 == stat.Epoch() && stat.Mtime-at >= steadyTimes*cl.ConfirmMs
	}
	if stat.Mtime-clStat.Ctime < steadyTimes*cl.ConfirmMs {
		return false, nil // a new cluster, or one that was just put back: holders may follow
	}
	if evidence(clStat.Czxid, clStat.Ctime) || evidence(clStat.Mzxid, clStat.Mtime) {
		return true, nil
	}
	// Tickets are listed in the order of their creation, so a binary search finds the
	// oldest of this epoch. Where the numbers began again it may miss that one, which only
	// costs a wait.
	names, err := c.Store.Children(ctx, ticketsPath)
	if err != nil {
		return false, err
	}
	read := func(i int) zkstore.Stat {
		_, s, gerr := c.Store.Get(ctx, ticketsPath+"/"+names[i])
		if gerr != nil {
			return zkstore.Stat{} // deleted meanwhile: counts as an older epoch
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

// confirmTime returns the cluster's confirming time plus BorrowMs.
func confirmTime(cl Cluster) time.Duration {
	if cl.ConfirmMs == 0 {
		return 0
	}
	// A holder that ZooKeeper lost may have issued up to BorrowMs ahead of its clock.
	return time.Duration(cl.ConfirmMs+cl.BorrowMs) * time.Millisecond
}
