// Package flaked issues unique 64-bit IDs that sort by time. A program that imports it is a node of
// a flaked cluster: it acquires a worker from ZooKeeper, a number that no other node holds, and makes
// IDs by a function call. It keeps the same promises as the daemon flaked, which is built on this
// package. docs/safety.md has the promises, and says why they hold.
//
//	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
//	defer cancel()
//	node, err := flaked.Open(ctx, flaked.Config{
//		ZooKeeper: "zk1,zk2,zk3",
//		Cluster:   "orders",
//		StateDir:  "/var/lib/orders/flaked",
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
// beside it (package client), and its tests take one from package ids/idstest. docs/go.md
// has a whole program, compares the ways to get IDs, and says what happens at rolling restarts, in
// tests, in short jobs and without a disk.
//
// The package never exits the process, handles no signals, writes to no standard stream, and
// reads no flags and no environment variables.
package flaked

import (
	"context"
	"fmt"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// Next returns one new ID. It does no I/O and allocates no memory. If the IDs of this tick are used
// up, it waits for the next tick. If the clock went back a little, it waits as the cluster's rollback
// policy says. Only when it has to wait, it looks at ctx.
//
// A node that may not give IDs at the moment refuses at once, with an error that wraps
// ids.ErrUnavailable and an *ids.ReplyError with the words of the line protocol. After Close the
// error is ids.ErrClosed.
func (n *Node) Next(ctx context.Context) (worker.ID, error) {
	run, err := n.node.Reserve(ctx, 1)
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
		run, err := n.node.Reserve(ctx, count-len(all))
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
