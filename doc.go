// Package flaked gives out 64-bit, time-ordered IDs that never repeat. A program that imports it
// is a node of a flaked cluster: it holds a worker number, which ZooKeeper grants, and makes IDs
// by a function call. It keeps the same promises as `flaked serve`, which is this package with
// ports (docs/safety.md says what they are and why they hold).
//
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
// Next does no I/O. A node that has served for a while goes on for up to a day without
// ZooKeeper, and restarts without it. Each running Node needs a StateDir of its own.
//
// A program that takes an ids.Source works as well with a client of a node beside it (package
// client). docs/embedding.md compares the ways, and says what happens at rolling restarts, in
// tests, in short jobs and without a disk.
//
// The package never exits the process, handles no signals, writes to no standard stream, and
// reads no flags and no environment variables.
package flaked
