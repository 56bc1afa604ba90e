//go:build unix

// Package harness runs the binary as its users run it: with real processes, sockets, state directories and
// ZooKeeper servers.
//
// A Site is a cluster: ZooKeeper, the flags of its nodes, and the history of their IDs. A Node is a state directory,
// the processes that run on it one after another, and its links to ZooKeeper (internal/testkit/faultnet). A test
// starts, stops, kills and freezes it, and cuts its links.
//
// A Load is a group of clients of a node. Every ID that they receive goes into the History, and every request that was
// not answered is a Miss. The history is judged at the end of each test: no ID comes twice, and no ID of a worker is
// below one that a client had received from that worker before it asked. Requests for values of sequences go into a
// ledger, which is checked likewise, by internal/check/order.
package harness
