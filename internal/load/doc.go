// Package load asks a server for IDs as fast as it can (closed loop) or at a rate (open
// loop). It reports how fast the replies came and whether they were right: every ID
// once, and in order on its connection.
//
// The generator must not be the bottleneck of what it measures. On Linux each thread
// has an event loop that reads and writes its connections without blocking. A reply
// costs a few nanoseconds, and the loop allocates nothing while it runs. Elsewhere, and
// over TLS, two goroutines serve each connection, which takes more of the machine.
//
// In an open loop the latency of a request counts from when the request was due, not
// from when the generator sent it. If a server stalls for a second, every request that
// was due in that second counts as late, as it is for the server's users.
package load
