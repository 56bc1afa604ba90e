package node

import (
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// Now returns the time of the clock that IDs are made by.
func (n *Node) Now() time.Time { return time.Unix(0, n.clock.Now()) }

// Layout returns the cluster's layout, or the zero Layout while it is not known.
func (n *Node) Layout() worker.Layout {
	return n.peek().layout
}

// Version returns the release of the program, from Config.Labels.
func (n *Node) Version() string { return n.cfg.Labels.Version }

// instant is RFC 3339, always with three digits of milliseconds.
const instant = "2006-01-02T15:04:05.000Z07:00"

// Decode describes an ID in one line of name=value pairs. It returns an *ids.ReplyError with ERR if
// the layout cannot have made the ID, and with NOTREADY while the layout is not known.
func (n *Node) Decode(id worker.ID) (string, error) {
	layout := n.Layout()
	if layout == (worker.Layout{}) {
		return "", replies.ErrNoLayout
	}
	f, err := layout.Decode(id)
	if err != nil {
		return "", replies.New(ids.ERR, err.Error())
	}
	text := fmt.Sprintf("id=%d time=%s timestamp_ms=%d datacenter=%d worker=%d sequence=%d",
		id, layout.Time(f).Format(instant), layout.Start(f.Tick), f.Datacenter, f.Worker, f.Sequence)
	if layout.SegmentBits > 0 {
		text += fmt.Sprintf(" segment=%d", f.Segment)
	}
	if layout.RollbackBits > 0 {
		text += fmt.Sprintf(" rollback=%d", f.Rollback)
	}
	return text, nil
}

// Cluster returns the name of the node's cluster and its UUID. The UUID is empty until the node has a claim: from its
// state directory, or by confirming a worker. Before that, the record of a cluster that ZooKeeper has lost may replace
// that of a new one.
func (n *Node) Cluster() (name, uuid string) {
	s := n.peek()
	if s.Stage == coordinator.Confirmed || s.resumed || n.beganAt.Load() != 0 {
		uuid = s.cluster.UUID
	}
	return n.cfg.Cluster, uuid
}

// belongs reports whether the node has said to which cluster it belongs. It stays with that one.
func (n *Node) belongs() bool {
	_, uuid := n.Cluster()
	return uuid != ""
}

// Worker describes the node in one line of name=value pairs: worker ("none" if it has none),
// term, node identity, name and phase.
func (n *Node) Worker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := "none"
	if n.tenure != nil {
		number = strconv.Itoa(n.tenure.Worker)
	}
	claim := n.view.Load().Claim
	return fmt.Sprintf("worker=%s term=%d node=%s name=%s state=%s", number, claim.Term, claim.Node,
		n.cfg.Labels.Name, n.phase)
}
