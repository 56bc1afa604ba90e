package node

import (
	"fmt"
	"sync/atomic"
	"time"
)

// turns has the time of each loop's last turn, monotonic ns. 0: the loop has not begun.
type turns struct{ extend, keep atomic.Int64 }

// stuckAfter is the longest time that extendLoop may take for a turn. It turns every third of
// Config.Reserve, and waits for nothing but the disk.
const stuckAfter = 10 * time.Second

// Live returns nil while the node's loops turn. An error names the loop that is stuck: the
// process must be restarted then. Live makes no call to ZooKeeper. Restarting cannot fix a
// stalled disk, so a node that waits for a write is live.
func (n *Node) Live() error {
	if !n.saveMu.TryLock() {
		return nil // a write is under way
	}
	n.saveMu.Unlock()
	now := n.monotonic()
	for _, loop := range []struct {
		what  string
		last  int64
		limit time.Duration
	}{
		{"extends the reserved bound", n.turns.extend.Load(), stuckAfter},
		// Each call has a deadline, but looking through many slots takes many calls.
		{"sends heartbeats", n.turns.keep.Load(), time.Minute + n.cfg.Heartbeat + 12*n.cfg.RoundTimeout},
	} {
		if since := time.Duration(now - loop.last); loop.last != 0 && since > loop.limit {
			return fmt.Errorf("the loop that %s has been stuck for %s", loop.what, since.Round(time.Second))
		}
	}
	return nil
}
