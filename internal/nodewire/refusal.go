package nodewire

import (
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

// worded is a refusal and the reply that it is sent as.
type worded struct {
	refusal *node.Refusal
	reply   *lineproto.Error
}

// sent returns an error of the nodes as it is sent, nil for none. The words of the last
// refusal are kept, so that one which lasts is put into words once. Refusals that a node
// makes anew for each request (of a clock that is behind, or at a bound) are not.
func (b *Backend) sent(err error) error {
	refusal, ok := errors.AsType[*node.Refusal](err)
	if !ok {
		return err
	}
	if last := b.last.Load(); last != nil && last.refusal == refusal {
		return last.reply
	}
	reply := word(refusal)
	b.last.Store(&worded{refusal, reply})
	return reply
}

// word returns a refusal in the wire's words, which docs/operations.md lists.
func word(r *node.Refusal) *lineproto.Error {
	switch r.Cause {
	case node.CauseClockBehind:
		ms := ceilMs(r.Behind)
		return &lineproto.Error{Code: lineproto.CLOCK, Text: fmt.Sprintf("the clock is behind the last ID behind_ms=%d retry_after_ms=%d", ms, ms)}
	case node.CauseClockWrong:
		return &lineproto.Error{Code: lineproto.CLOCK, Text: fmt.Sprintf("this node's clock is wrong by most voters offset_ms=%d", r.Offset.Milliseconds())}
	case node.CauseLeaseOver:
		return &lineproto.Error{Code: lineproto.FENCED, Text: "the lease has run out and ZooKeeper could not be reached to extend it"}
	case node.CauseLostWorker:
		return &lineproto.Error{Code: lineproto.FENCED, Text: "this node lost its worker and is registering as a new one"}
	case node.CauseTimeUsedUp:
		return &lineproto.Error{Code: lineproto.EXHAUSTED, Text: "the layout's time field is used up"}
	case node.CauseStopping:
		return &lineproto.Error{Code: lineproto.NOTREADY, Text: "stopping"}
	}
	return &lineproto.Error{Code: lineproto.NOTREADY, Text: phrase(r) + " reason=" + string(r.Cause)}
}

// phrase returns what a node that is not ready does, or lacks.
func phrase(r *node.Refusal) string {
	switch {
	case r.Cause == node.CauseLeaseBorrowed:
		return "all that may be borrowed of the lease is used up"
	case r.Bound == node.BoundLate:
		return "no durable bound: the process stood still, and the bound on the disk is being renewed"
	case r.Bound == node.BoundStalled:
		return "no durable bound: the state directory does not answer"
	case r.Bound == node.BoundUnwritable:
		return "no durable bound: the state directory cannot be written"
	}
	return string(r.Phase)
}

func ceilMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
