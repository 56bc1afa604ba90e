// Package flaked gives out 64-bit, time-ordered IDs that never repeat. A program that imports it
// is a node of a flaked cluster: it acquires a worker from ZooKeeper, a number that no other node
// holds, and makes IDs by a function call. It keeps the same promises as `flaked serve`, which is
// this package with ports. docs/safety.md has the promises, and says why they hold.
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
// The cluster must exist: `flaked cluster init` or Config.Bootstrap creates it. Each running Node
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
