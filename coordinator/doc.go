// Package coordinator keeps a node's worker slot in ZooKeeper. A slot is the record of one worker. The package has the
// ticket that a node registers by, the slot with its lease bound, the live lock, the heartbeats that report the node's
// clock, and the recovery after ZooKeeper has lost data. The commands of operators are in operator*.go. All records are
// in a store.Store. A GET never calls this package.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package coordinator
