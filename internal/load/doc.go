// Package load asks a node for IDs as fast as it answers (closed loop) or at a rate (open
// loop). It reports how fast the replies came and whether they were right: every ID once, and
// in order on its connection.
//
// A goroutine serves each connection: it writes the requests that are due, reads their replies,
// and begins again. It needs more of a processor than the node.
//
// In an open loop the latency of a request that became due while its connection waited for
// replies counts from when it was due. If a server stalls for a second, every request that was
// due in that second counts as late, as it is for the server's users.
package load
