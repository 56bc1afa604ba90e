// Package node is one node's life: it starts (resumes the slot of its state
// directory, or registers as new), serves IDs, keeps its bounds ahead of the
// clock, and stops. It knows no wire: why it refuses is a Refusal, which others word.
//
// Two loops keep a serving node alive: one extends the reserved bound on the
// local disk every second, one reports to ZooKeeper every heartbeat. A GET
// touches neither: it takes positions from the generator below whatever bounds
// those loops have made good.
package node
