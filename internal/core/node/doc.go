// Package node runs one flaked node. A node starts: it resumes the slot of its state directory, or registers as a new
// node. It serves IDs, keeps its bounds ahead of the clock, and stops. A request that is refused gets a Refusal, which
// has the text of the reply. The caller sends the reply in its protocol.
//
// Two loops keep a node serving. One extends the reserved bound on the local disk, every second by default. The other
// reports to ZooKeeper every heartbeat. A GET does no I/O. Invariant: the generator makes IDs only below a reserved
// bound that is already durable on the disk, and below a lease bound that ZooKeeper has already acknowledged.
//
// Three types to read: tenure, the time for which the process holds one worker; keeper, the loop that acquires the
// worker and reports; Node, which both loops and all callers share.
package node
