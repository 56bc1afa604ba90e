// Package judge records the IDs that clients of flaked received, and checks them against
// these rules:
//
//   - No ID was issued twice.
//   - IDs increase on each connection.
//   - IDs increase in real time on each worker and on each node.
//   - Timestamps agree with what the node's clock showed at that moment.
//   - A node issued nothing while it had to refuse.
//
// It handles hundreds of millions of IDs in bounded memory. Consecutive IDs of one reply are
// one record of 32 bytes. Each client writes a file of its own, in the order of its replies.
// Uniqueness is checked by an external sort, order by one pass over the merged files.
//
// All times are nanoseconds since the start of the run by one monotonic clock, unless a
// comment says Unix ms.
package judge
