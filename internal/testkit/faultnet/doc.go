// Package faultnet provides a TCP link that breaks on demand, between one node and one
// ZooKeeper server.
//
//	link, err := faultnet.New(zookeeper)
//	...                     // the node connects to link.Addr()
//	link.BlackHole()        // packets are lost from now on
//	...
//	link.Heal()             // they are sent again, and arrive
//
// A link is in one state at a time. It begins in the carrying state, and each fault method
// replaces the state. Delay applies in every state.
//
// # Black holes
//
// TCP retransmits lost packets. When a network comes back, it delivers everything that was
// sent meanwhile: late, in order, and complete. A link therefore holds everything that it
// cannot deliver, including ends of streams and resets. It delivers them at the next Heal, or
// when another method lets that direction pass. The sender sees the same as with a real black
// hole: its writes succeed until the buffers on the way are full, and then block. Only Cut,
// Reset and Close lose the held data.
//
// A link differs from a real black hole in two ways. A connect succeeds, because the kernel
// accepts connections on behalf of the link's listener. Keepalive probes are answered by the
// link's end of the connection.
//
// Why not toxiproxy (2.5.0 was looked at): its black hole drops what it swallows and then
// closes the connection, so nothing arrives late. It dials before a fault can hold the dial,
// makes its listeners itself, so that none of them has TLS, and knows no sessions.
package faultnet
