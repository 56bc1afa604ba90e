// Package nodewire implements lineproto.Backend for a node. It writes the
// text of refusals, of STATS and of DECODE.
package nodewire

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

// Backend is the lineproto.Backend of a node. Make it with New.
type Backend struct {
	*node.Node
	version string
	started time.Time
	// last is the last refusal that was sent.
	last atomic.Pointer[worded]
}

// New returns the Backend of a node. version is the release of flaked.
func New(n *node.Node, version string) *Backend {
	return &Backend{Node: n, version: version, started: time.Now()}
}

// Version returns the release.
func (b *Backend) Version() string { return b.version }

// Reserve takes between 1 and k IDs of one tick and one worker. A refusal is returned as the
// *lineproto.Error that the client gets.
func (b *Backend) Reserve(ctx context.Context, k int) (worker.Run, error) {
	run, err := b.Node.Reserve(ctx, k)
	if err != nil {
		return worker.Run{}, b.sent(err)
	}
	return run, nil
}

// Ready returns nil when a GET would be answered with an ID, and otherwise the error that the
// client would get.
func (b *Backend) Ready() error { return b.sent(b.Node.Ready()) }

// Snapshot returns the state of the node, with Code and Reason as a client gets them.
func (b *Backend) Snapshot() node.Snapshot {
	s := b.Node.Snapshot()
	if s.Refusal != nil {
		e := word(s.Refusal)
		s.Code, s.Reason = e.Code.String(), e.Text
	}
	return s
}

// instant is RFC 3339, always with three digits of milliseconds.
const instant = "2006-01-02T15:04:05.000Z07:00"

// Decode returns the line that DECODE answers with. It returns a *lineproto.Error with ERR if
// the layout cannot have made the ID, and with NOTREADY while the layout is not known.
func (b *Backend) Decode(id worker.ID) (string, error) {
	layout := b.Layout()
	if layout == (worker.Layout{}) {
		return "", &lineproto.Error{Code: lineproto.NOTREADY, Text: "starting: the cluster's layout is not known yet"}
	}
	f, err := layout.Decode(id)
	if err != nil {
		return "", &lineproto.Error{Code: lineproto.ERR, Text: err.Error()}
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
