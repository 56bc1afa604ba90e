// Package coordinator keeps a node's worker slot in ZooKeeper: the ticket by
// which it registers, the slot with its lease bound, the live lock, the
// heartbeats that report its clock, and what to do when ZooKeeper has lost
// data. What operators do to these records is in operator*.go. The records are
// in a zkstore.Store, and nothing of it is ever on the path of a GET.
package coordinator
