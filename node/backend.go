package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/worker"
)

// Reserve takes between 1 and k IDs of one tick. Its errors are *lineproto.Error.
func (n *Node) Reserve(ctx context.Context, k int) (worker.Run, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, n.refusal.Load()
		}
		run, err := t.gen.Reserve(ctx, k)
		switch {
		case err == nil:
			return run, nil
		case err == worker.ErrClosed && n.serving.Load() != t:
			// Another has taken its place while this request waited.
		default:
			return worker.Run{}, n.explain(t, err)
		}
	}
}

// try is Reserve that does not wait: where a little would do, it says how long, and
// what the wait is for.
func (n *Node) try(k int, waited time.Duration) (*tenure, worker.Run, worker.Pause, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return nil, worker.Run{}, worker.Pause{}, n.refusal.Load()
		}
		run, pause, err := t.gen.Try(k, waited)
		switch {
		case err == nil:
			return t, run, pause, nil
		case err != worker.ErrClosed || n.serving.Load() == t:
			return t, run, pause, n.explain(t, err)
		}
	}
}

// explain says in the wire's terms why a tenure made no ID.
func (n *Node) explain(t *tenure, err error) error {
	var behind *worker.BehindError
	switch {
	case errors.As(err, &behind):
		ms := ceilMs(behind.Behind)
		n.behindOnce(behind.Behind)
		return &lineproto.Error{Code: lineproto.CLOCK, Text: fmt.Sprintf("the clock is behind the last ID behind_ms=%d retry_after_ms=%d", ms, ms)}
	case errors.Is(err, worker.ErrTimeExhausted):
		return &lineproto.Error{Code: lineproto.EXHAUSTED, Text: "the layout's time field is used up"}
	case errors.Is(err, worker.ErrLimit):
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.now() >= n.claim.H {
			return &lineproto.Error{Code: lineproto.FENCED, Text: "the lease has run out and ZooKeeper could not be reached to extend it"}
		}
		if n.borrow > 0 && n.claim.H <= n.m {
			return &lineproto.Error{Code: lineproto.NOTREADY, Text: "all that may be borrowed of the lease is used up reason=lease-borrowed"}
		}
		why := "the process stood still, and the bound on the disk is being renewed"
		switch {
		case n.stalled():
			why = "the state directory does not answer"
		case n.diskErr != nil:
			why = "the state directory cannot be written"
		}
		return &lineproto.Error{Code: lineproto.NOTREADY, Text: "no durable bound: " + why + " reason=no-durable-bound"}
	case errors.Is(err, worker.ErrClosed):
		return n.refusal.Load() // dropped since we looked
	}
	return errStopping
}

var errStopping = &lineproto.Error{Code: lineproto.NOTREADY, Text: "stopping"}

// behindOnce has the keeper look at a rollback that a fresh slot may end sooner
// than the clock does; once a second, however many ask.
func (n *Node) behindOnce(by time.Duration) {
	now := n.mono()
	if last := n.kicked.Load(); by > limits.RotateBehind && now-last > int64(time.Second) && n.kicked.CompareAndSwap(last, now) {
		wake(n.kick)
	}
}

func ceilMs(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Ready is nil when an ID would be made. It makes none.
func (n *Node) Ready() error {
	t := n.serving.Load()
	if t == nil {
		return n.refusal.Load()
	}
	if err := t.gen.Ready(); err != nil {
		return n.explain(t, err)
	}
	return nil
}

// Now is the clock that IDs are made by.
func (n *Node) Now() time.Time { return time.Unix(0, n.clock.Now()) }

// Version is the release.
func (n *Node) Version() string { return n.cfg.Labels.Version }

// Decode takes an ID apart by the cluster's layout.
func (n *Node) Decode(id worker.ID) (string, error) {
	n.mu.Lock()
	layout := n.layout
	n.mu.Unlock()
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

// instant is RFC 3339 with milliseconds, always three digits.
const instant = "2006-01-02T15:04:05.000Z07:00"

// Worker is the node in one line.
func (n *Node) Worker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := "none"
	if n.held != nil {
		number = strconv.Itoa(n.held.worker)
	}
	return fmt.Sprintf("worker=%s term=%d node=%s name=%s state=%s", number, n.claim.Term, n.claim.Node, n.cfg.Labels.Name, n.phase)
}
