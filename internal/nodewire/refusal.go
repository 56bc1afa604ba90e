package nodewire

import (
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
)

// worded is a refusal and the reply that a client gets for it.
type worded struct {
	refusal *node.Refusal
	reply   *lineproto.Error
}

// sent returns the reply for a refusal, and any other error unchanged. It keeps the reply for
// the last refusal, so that a lasting refusal is formatted once. A node makes a new refusal
// for each request if its clock is behind or it is at a bound. Those are formatted each time.
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

// word returns the reply for a refusal. docs/troubleshooting.md lists the texts.
func word(r *node.Refusal) *lineproto.Error {
	switch r.Cause {
	case node.CauseClockBehind:
		ms := ceilMs(r.Behind)
		return &lineproto.Error{Code: lineproto.CLOCK, Text: fmt.Sprintf("the clock is behind the last ID behind_ms=%d retry_after_ms=%d", ms, ms)}
	case node.CauseClockWrong:
		return &lineproto.Error{Code: lineproto.CLOCK, Text: fmt.Sprintf("most voters say that this node's clock is wrong offset_ms=%d", r.Offset.Milliseconds())}
	case node.CauseLeaseExpired:
		return &lineproto.Error{Code: lineproto.FENCED, Text: "the lease has expired: ZooKeeper could not be reached to renew it"}
	case node.CauseLostWorker:
		return &lineproto.Error{Code: lineproto.FENCED, Text: "this node lost its worker and is registering as a new one"}
	case node.CauseTimeUsedUp:
		return &lineproto.Error{Code: lineproto.EXHAUSTED, Text: "the layout's time field is used up"}
	case node.CauseDraining:
		return &lineproto.Error{Code: lineproto.NOTREADY, Text: "draining: the node stops soon"}
	case node.CauseStopping:
		return &lineproto.Error{Code: lineproto.NOTREADY, Text: "stopping"}
	}
	return &lineproto.Error{Code: lineproto.NOTREADY, Text: phrase(r) + " reason=" + string(r.Cause)}
}

// phrase returns the text of a NOTREADY reply before " reason=".
func phrase(r *node.Refusal) string {
	switch {
	case r.Cause == node.CauseLeaseBorrowed:
		return "a burst has borrowed up to the end of the lease"
	case r.Bound == node.BoundLate:
		return "reserved bound reached: the process stood still, and is writing a new reserved bound"
	case r.Bound == node.BoundStalled:
		return "reserved bound reached: the state directory does not answer"
	case r.Bound == node.BoundUnwritable:
		return "reserved bound reached: the state directory cannot be written"
	}
	return string(r.Phase)
}

// ceilMs returns d in milliseconds, rounded up.
func ceilMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
