package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// Reserve takes between 1 and k IDs of one tick. It waits for the next tick if the present one
// has no IDs left. It waits for a clock that went back if the cluster's rollback policy says
// so. Its errors are *Refusal. If the context ends, the cause is CauseStopping.
func (n *Node) Reserve(ctx context.Context, k int) (worker.Run, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, n.refusal.Load()
		}
		run, err := t.gen.Reserve(ctx, k)
		if err == nil {
			return run, nil
		}
		if !n.replaced(t, err) {
			return run, n.explain(t, err)
		}
	}
}

// Try does what Reserve does, but where that waits it returns an empty Run and a Pause. waited is
// how long requests have waited for a clock that went back.
func (n *Node) Try(k int, waited time.Duration) (worker.Run, worker.Pause, error) {
	for {
		t := n.serving.Load()
		if t == nil {
			return worker.Run{}, worker.Pause{}, n.refusal.Load()
		}
		run, pause, err := t.gen.Try(k, waited)
		if err == nil {
			return run, pause, nil
		}
		if !n.replaced(t, err) {
			return run, pause, n.explain(t, err)
		}
	}
}

// replaced reports whether another tenure has replaced t while a request waited for t.
func (n *Node) replaced(t *tenure, err error) bool {
	return err == worker.ErrClosed && n.serving.Load() != t
}

// explain returns the refusal for an error of a tenure's generator.
func (n *Node) explain(t *tenure, err error) error {
	var behind *worker.BehindError
	switch {
	case errors.As(err, &behind):
		n.wakeIfBehind(behind.Behind)
		return newRefusal(Refusal{Cause: CauseClockBehind, Behind: behind.Behind})
	case errors.Is(err, worker.ErrTimeExhausted):
		return newRefusal(Refusal{Cause: CauseTimeUsedUp, Era: era(n.peek().layout)})
	case errors.Is(err, worker.ErrLimit):
		return n.refusalAtBound()
	case errors.Is(err, worker.ErrClosed):
		return n.refusal.Load() // the tenure has ended, and no other one serves
	}
	return errStopping
}

var errStopping = newRefusal(Refusal{Cause: CauseStopping, Phase: Stopping})

// errSequencesElsewhere is the error of Ready while the node has just started. See waitsForSequences.
var errSequencesElsewhere = newRefusal(Refusal{Cause: CauseSequences, Phase: Serving})

// errDraining is the error of Ready after Drain.
var errDraining = newRefusal(Refusal{Cause: CauseDraining, Phase: Serving})

// refusalAtBound returns the refusal of a clock that has reached the tenure's bound. It says why the bound has not
// moved on.
func (n *Node) refusalAtBound() *Refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	lease := n.view.Load().Claim.LeaseUntil
	switch {
	case n.now() >= lease:
		return newRefusal(Refusal{Cause: CauseLeaseExpired})
	case n.borrow > 0 && lease <= n.reservedUntil:
		return newRefusal(Refusal{Cause: CauseLeaseBorrowed})
	case n.stalledLocked():
		return newRefusal(Refusal{Cause: CauseReservedBound, Bound: BoundStalled})
	case n.disk.err != nil:
		return newRefusal(Refusal{Cause: CauseReservedBound, Bound: BoundUnwritable})
	}
	return newRefusal(Refusal{Cause: CauseReservedBound, Bound: BoundLate})
}

// wakeIfBehind wakes the keeper if the clock is behind by more than limits.RotateBehind: with a fresh slot the node may
// serve sooner than with the old one. It wakes the keeper at most once a second, however many requests come.
func (n *Node) wakeIfBehind(by time.Duration) {
	now := n.monotonic()
	if last := n.keeperWokenAt.Load(); by > limits.RotateBehind && now-last > int64(time.Second) &&
		n.keeperWokenAt.CompareAndSwap(last, now) {
		wake(n.wakeKeeper)
	}
}

// Ready returns nil if other nodes may stop now: a request would get an ID, now or after a short wait, the node will go
// on serving, and it takes values of named sequences, or no other node does either. Otherwise it returns the *Refusal.
func (n *Node) Ready() error {
	switch err := n.Issues(); {
	case err != nil:
		return err
	case n.draining.Load():
		return errDraining
	case n.waitsForSequences():
		return errSequencesElsewhere
	}
	return nil
}

// Issues returns nil if a request would get an ID, now or after a short wait. Otherwise it returns the *Refusal. It
// makes no ID.
func (n *Node) Issues() error {
	t := n.serving.Load()
	if t == nil {
		return n.refusal.Load()
	}
	if err := t.gen.Ready(); err != nil {
		return n.explain(t, err)
	}
	return nil
}

// Served returns a channel that is closed once the node has begun to serve.
func (n *Node) Served() <-chan struct{} { return n.began }

// Ceiling returns how many IDs the node can make in a second, or in one tick if a tick is longer.
// It is 0 while the node does not serve.
func (n *Node) Ceiling() int64 {
	if t := n.serving.Load(); t != nil {
		return t.gen.Ceiling()
	}
	return 0
}

// Waits returns how many reservations have begun to wait for a tick so far.
func (n *Node) Waits() int64 { return n.meter.worker.TickWaits.Load() }

// Drain prepares the stop of the node: from now on Ready returns a *Refusal with CauseDraining,
// so that clients leave. Reserve still makes IDs. If release is true, the node releases its
// worker when it stops, as with Config.ReleaseOnExit.
func (n *Node) Drain(release bool) {
	n.releases.Store(release)
	n.draining.Store(true)
}

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
	if s.Stage == coordinator.Confirmed || s.resumed || n.servedAt.Load() != 0 {
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
