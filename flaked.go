// Package flaked issues unique 64-bit IDs that sort by time. A program that imports it is a node of
// a flaked cluster: it acquires a worker from ZooKeeper, a number that no other node holds, and makes
// IDs by a function call. It keeps the same promises as the daemon flaked, which is built from the
// same parts. docs/safety.md has the promises, and docs/design.md says why they hold.
//
//	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
//	defer cancel()
//	node, err := flaked.Open(ctx, flaked.Config{
//		ZooKeeper: "zk1,zk2,zk3",
//		Cluster:   "orders",
//		StateDir:  "/var/lib/orders/flaked",
//		Logger:    slog.Default(),
//	})
//	if err != nil {
//		return err
//	}
//	defer node.Close(context.Background())
//	id, err := node.Next(ctx)
//
// The cluster must exist: an operator or Config.Bootstrap creates it. Each running Node
// needs a StateDir of its own.
//
// Next does no I/O. Without ZooKeeper, a node serves until its lease expires: 60 s plus twice the
// time that it has served, up to a day. Until then it can also restart without ZooKeeper.
//
// A Node is an ids.Source. A program that takes an ids.Source works as well with a client of a node
// beside it (package client), and its tests take one from package ids/idstest. docs/clients.md
// compares the ways to get IDs, and says what happens at restarts, without a disk and in tests.
//
// The package never exits the process, handles no signals, writes to no standard stream, and
// reads no flags and no environment variables.
package flaked

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/worker"
)

// Node is a node inside this program. Make it with Open or Start, and end it with Close. Any
// number of goroutines may use it at once. It is an ids.Source.
type Node app.Node

var _ ids.Source = (*Node)(nil)

func (n *Node) app() *app.Node { return (*app.Node)(n) }

// Open starts a node and waits until it is ready, so that Next gives IDs. If the node ends with
// an error before that, Open returns the error. If ctx is done first, Open closes the node, and
// returns an error that says what the node was waiting for. With ReleaseOnClose it may take a second
// more to release a worker.
//
// Give ctx a deadline, because without ZooKeeper a new node waits for ever. The deadline must be
// longer than the start can take:
//
//   - A node that starts again with its StateDir before its lease has expired is ready within some
//     10 ms. After a crash it first waits for up to Config.Reserve. Without ZooKeeper it takes 1.5 s
//     more.
//   - Every other node is ready after the cluster's confirming time, 12 s by default.
//
// The ctx of Open does not end the node later. Close does.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	n, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.WaitReady(ctx); err != nil {
		if e := n.app().Locked(); e != nil {
			_ = n.Close(context.Background()) // at once: it has nothing
			return nil, &StateDirError{e.Dir, fmt.Errorf("%w (%w)", e.Err, err)}
		}
		connected := ctx.Err() == nil || n.app().Store().SessionID() != 0
		patience := time.Duration(0) // the caller has waited long enough
		if connected && (cfg.ReleaseOnClose || cfg.StateDir == "") {
			patience = releaseTime
		}
		cut, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = n.Close(cut)
		return nil, advised(err, connected)
	}
	return n, nil
}

// releaseTime is how long an Open that failed may take to release its worker. A program that calls Open
// again and again with a short deadline would use up the cluster's workers otherwise.
const releaseTime = time.Second

// Start starts a node, and does not wait until it is ready. It returns a *ConfigError if cfg is
// wrong, and a *StateDirError if a state directory cannot be used. An error that stops the node
// later is not returned here: see Done. If another process has the state directory, the node waits for
// it for 30 s, and then ends with a *StateDirError that wraps ErrLocked.
func Start(cfg Config) (*Node, error) {
	made, err := cfg.app()
	if err != nil {
		return nil, &ConfigError{outward(err)}
	}
	n, err := app.New(made)
	if err != nil {
		made.Ended()
		return nil, &ConfigError{outward(err)}
	}
	if err := n.Start(); err != nil {
		return nil, outward(err)
	}
	return (*Node)(n), nil
}

// WaitReady waits until the node is ready, as Open does.
func (n *Node) WaitReady(ctx context.Context) error { return outward(n.app().WaitReady(ctx)) }

// Close ends the node. Calls that wait fail with ids.ErrClosed. Close stores the bounds, so that
// the next start with this StateDir does not wait for the clock. It also reports the end to
// ZooKeeper. The report takes some milliseconds, up to 5 s if ZooKeeper is slow or has just gone, and
// a second if the last report had failed. If ctx is done first, Close gives ZooKeeper a second more to end the
// session. No ID is lost then, but a worker that Close releases may stay reserved until its lease
// expires.
//
// When Close returns, all goroutines of the node have ended. Close returns nil after an end in
// good order, ctx.Err() if ctx cut the end short, and otherwise the error that had ended the node
// before. It may be called more than once.
func (n *Node) Close(ctx context.Context) error { return outward(n.app().Close(ctx)) }

// Done returns a channel that is closed when the node has ended: after Close, or because of an
// error, such as a clock that is wrong at the start. Close then returns the error.
func (n *Node) Done() <-chan struct{} { return n.app().Done() }

// reason returns why the node ends: ids.ErrClosed, or the error of a part. It returns nil while the
// node does not end.
func (n *Node) reason() error { return outward(n.app().Reason()) }

// Drain prepares the end of the node. From now on Ready returns an error, so that load balancers
// send requests to other nodes. Next still gives IDs until Close. If release is true, Close releases
// the worker, as with Config.ReleaseOnClose. At the end of a program: Drain, then Leave if it serves the line
// protocol, then the end of its server, then Close.
func (n *Node) Drain(release bool) { n.app().Drain(release) }

// Leave gives the ordered sequences that this node owns to other nodes, if there are any. It returns when that is
// done, or when ctx ends. Requests for them are passed on to the new owners until Close. Call it before a server of
// the line protocol ends: else other nodes would ask this one in vain.
func (n *Node) Leave(ctx context.Context) { n.app().Leave(ctx) }

// Ready returns nil if Next would give an ID now or after a short wait. After Drain it returns an error. If other nodes
// take values of named sequences, it also returns an error until this node does. It is for readiness probes. Its errors
// are those of Next.
func (n *Node) Ready() error {
	if err := n.app().Core().Ready(); err != nil {
		return n.refused(context.Background(), err)
	}
	return nil
}

// Live returns nil while the node's goroutines make progress, and otherwise the reason to restart
// the process. It does not depend on ZooKeeper. It is for liveness probes.
func (n *Node) Live() error { return n.app().Core().Live() }

// Next returns one new ID. It does no I/O and allocates no memory. If the IDs of this tick are used
// up, it waits for the next tick. If the clock went back a little, it waits as the cluster's rollback
// policy says. Only when it has to wait, it looks at ctx.
//
// A node that may not give IDs at the moment refuses at once, with an error that wraps
// ids.ErrUnavailable and an *ids.ReplyError with the words of the line protocol. After Close the
// error is ids.ErrClosed.
func (n *Node) Next(ctx context.Context) (worker.ID, error) {
	run, err := n.app().Core().Reserve(ctx, 1)
	if err != nil {
		return 0, n.refused(ctx, err)
	}
	return run.First, nil
}

// Take returns count new IDs in ascending order, or an error and no IDs. count is 1 to
// ids.MaxTake. IDs that were taken before an error are lost. It waits and refuses as Next does.
func (n *Node) Take(ctx context.Context, count int) ([]worker.ID, error) {
	if err := checkCount("Take", count); err != nil {
		return nil, err
	}
	all := make([]worker.ID, 0, count)
	for len(all) < count {
		run, err := n.app().Core().Reserve(ctx, count-len(all))
		if err != nil {
			return nil, n.refused(ctx, err)
		}
		for i := range run.Len {
			all = append(all, run.At(i))
		}
	}
	return all, nil
}

func checkCount(method string, n int) error {
	if n < 1 || n > ids.MaxTake {
		return fmt.Errorf("flaked: %s(%d): the count must be 1 to %d", method, n, ids.MaxTake)
	}
	return nil
}

// refused returns the error of a call that the nodes have refused with err.
func (n *Node) refused(ctx context.Context, err error) error {
	switch ended := n.reason(); {
	case ended == ids.ErrClosed:
		return ended
	case ended != nil:
		return ids.Unavailable(nil, ended)
	}
	return ids.Unavailable(ctx.Err(), err)
}

// advised returns err, with which Open fails, and what to do. connected is false if Open
// has waited for ZooKeeper in vain.
func advised(err error, connected bool) error {
	if !connected {
		return fmt.Errorf("%w. No connection to ZooKeeper: check Config.ZooKeeper, and that it runs and has a quorum",
			err)
	}
	if e, ok := errors.AsType[*ids.ReplyError](err); ok && e.Reason() == string(node.CauseConfirming) {
		return fmt.Errorf("%w. A new node waits for the cluster's confirming time before its first ID: give the "+
			"context of Open more time", err)
	}
	for _, row := range []struct {
		is     error
		advice string
	}{
		{coordinator.ErrNoCluster, "Check Config.ZooKeeper and Config.Cluster. Config.Bootstrap creates a cluster"},
		{store.ErrDenied, "Give Config.ZooKeeperAuth the user that created the records"},
		{store.ErrQuota, "Raise the quota"},
		{store.ErrLocalSession, "Set localSessionsUpgradingEnabled=true on all its servers"},
	} {
		if errors.Is(err, row.is) {
			return fmt.Errorf("%w. %s", err, row.advice)
		}
	}
	return err
}
