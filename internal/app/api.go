package app

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Core returns the node itself, Issuer its named sequences, and Store its records in ZooKeeper.
func (n *Node) Core() *node.Node    { return n.node }
func (n *Node) Issuer() *seq.Issuer { return n.issuer }
func (n *Node) Store() store.Store  { return n.backing.store }

// Cluster returns the name of the cluster.
func (n *Node) Cluster() string { return n.cluster }

// Locked returns why the node waits for its state directory, nil if it does not.
func (n *Node) Locked() *StateDirError { return n.locked.Load() }

// WaitReady waits until the node serves. It returns the reason if the node ends before, and an error that wraps
// ids.ErrUnavailable if ctx does.
func (n *Node) WaitReady(ctx context.Context) error {
	began := n.node.Began()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for n.node.WhyNoIDs() != nil {
		select {
		case <-began:
			began = nil // it has begun to serve, and may have stopped again
		case <-look.C:
		case <-n.done:
			return n.Reason()
		case <-ctx.Done():
			return ids.Unavailable(ctx.Err(), n.node.WhyNoIDs())
		}
	}
	return nil
}

// TakeValues takes count values of a sequence, and waits while the node fetches positions from ZooKeeper. With whole
// they follow each other without a gap. key is that of a strict sequence, "" for none. A refusal is an
// *ids.ReplyError. The error is Reason's if the node ends, and that of ctx if ctx does.
func (n *Node) TakeValues(ctx context.Context, name []byte, count int, whole bool, key string) ([]worker.Run, error) {
	w := sequence.Wait{Key: key}
	news := make(chan struct{}, 1)
	wake := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	for {
		runs, err := n.issuer.Take(&w, name, count, whole, wake, nil)
		if !errors.Is(err, sequence.ErrPending) {
			return runs, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.ending.Done():
			return nil, n.Reason()
		}
	}
}

// Close ends the node, and returns when all its goroutines have ended. It returns nil after an end in good order,
// ctx.Err() if ctx cut the end short, and otherwise the error that had ended the node before. It may be called more
// than once. flaked.Node.Close says how long it takes.
func (n *Node) Close(ctx context.Context) error {
	n.stop(ids.ErrClosed)
	var cut error
	select {
	case <-n.done:
	case <-ctx.Done():
		cut = ctx.Err()
		n.stopStore()
		<-n.done
	}
	if err := n.Reason(); err != ids.ErrClosed {
		return err
	}
	return cut
}

// Done returns a channel that is closed when all goroutines of the node have ended: after Close, or because of an
// error, which Close returns.
func (n *Node) Done() <-chan struct{} { return n.done }

// Ending returns a channel that is closed when the node begins to end. Reason then returns why.
func (n *Node) Ending() <-chan struct{} { return n.ending.Done() }

// Reason returns why the node ends: ids.ErrClosed, or the error of a part. It returns nil while the
// node does not end.
func (n *Node) Reason() error {
	err := context.Cause(n.ending)
	if errors.Is(err, context.Canceled) {
		return ids.ErrClosed
	}
	return err
}

// Drain prepares the end: from now on the node is not ready, and gives its ordered sequences to other nodes. If release
// is true, Close releases the worker.
func (n *Node) Drain(release bool) {
	n.node.Drain(release)
	n.issuer.Leave()
}

// Leave gives the ordered sequences that this node owns to other nodes, if there are any. It returns when that is
// done, or when ctx ends. Requests for them are passed on to the new owners until Close.
func (n *Node) Leave(ctx context.Context) {
	n.issuer.Leave()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !n.issuer.HasGivenAll() {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}
