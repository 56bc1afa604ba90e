package node

import (
	"fmt"
	"time"

	"go.uber.org/atomic"
)

// turns are when the loops of a node last turned, monotonic ns; 0 before they
// have begun.
type turns struct{ extend, keep atomic.Int64 }

// stuckAfter is how long the loop that keeps the bound may take for a turn. It
// turns each second, and waits for nobody but the disk.
const stuckAfter = 10 * time.Second

// Live is nil while the node's loops turn, else why the process is to be
// started again. It asks nothing of ZooKeeper, and a disk that stalls is not to
// be mended so: what waits for one is live.
func (n *Node) Live() error {
	if !n.saveMu.TryLock() {
		return nil // something is being written
	}
	n.saveMu.Unlock()
	now := n.mono()
	for _, loop := range []struct {
		what  string
		last  int64
		limit time.Duration
	}{
		{"keeps its bound on the disk", n.turns.extend.Load(), stuckAfter},
		// All its calls are bounded; looking through many slots takes some.
		{"reports to ZooKeeper", n.turns.keep.Load(), time.Minute + n.cfg.Heartbeat + 12*n.cfg.CallTimeout},
	} {
		if since := time.Duration(now - loop.last); loop.last != 0 && since > loop.limit {
			return fmt.Errorf("node: the loop that %s has not turned for %s", loop.what, since.Round(time.Second))
		}
	}
	return nil
}
