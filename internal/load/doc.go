// Package load asks a server for IDs as fast as it can (closed loop) or at a
// rate (open loop), and tells how fast the answers came and whether they were
// right: every ID once, and in order on its connection.
//
// The generator must not be what is measured. On Linux an event loop a thread
// reads and writes all its connections without blocking, a reply costs a few
// nanoseconds, and nothing is allocated while it runs. Elsewhere, and over TLS, two
// goroutines serve each connection, which takes more of the machine.
//
// In an open loop the latency of a request counts from the moment it was due, not
// from when the generator came to send it: a server that stalls for a second is a
// second late for everything that was due in it, as its users would find.
package load
