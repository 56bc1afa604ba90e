// Package coordinator keeps a node's worker slot in ZooKeeper. A slot is the record of one worker. The package has the
// ticket that a node registers by, the slot with its lease bound, the live lock, the heartbeats that report the node's
// clock, and the recovery after ZooKeeper has lost data. The commands of operators are in operator*.go. All records are
// in a store.Store. A GET never calls this package.
//
// Read it in this order:
//
//   - record.go and decide.go: the records, the Claim, and when a slot is free;
//   - hold.go and hold_state.go: what a process knows of its slot, and its stages;
//   - heartbeat.go, in the order of the calls, with judge.go: whether the record is ours. doubt.go, horizon.go,
//     chain.go and hearing.go have what its decisions go by: the leader's clock, the latest bound, the gaps, the peers;
//   - loss.go, restore.go, lost.go and fenced.go: what follows where the record is not ours;
//   - register.go with ticket.go, resume.go, stop.go: how a node gets a slot, gets it back, and leaves it;
//   - coordinator.go, cluster.go, live.go and peers.go: what all of these use. roster.go lists the slots for operators.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package coordinator
