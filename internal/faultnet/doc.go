// Package faultnet is the network between one node and one ZooKeeper: a TCP
// link that breaks on demand.
//
//	link, err := faultnet.New(zookeeper)
//	...                     // the node is given link.Addr()
//	link.BlackHole()        // packets are lost from now on
//	...
//	link.Heal()             // they are sent again, and arrive
//
// A link is in one state at a time, carrying at first; each method but Delay
// puts it into another. Delay comes on top of any.
//
// # What a black hole is
//
// TCP repeats what gets lost, so a network that comes back delivers what was
// sent meanwhile: late, in order, and with no byte missing. The link therefore
// holds what it cannot deliver, the ends of streams and resets included, and
// has it arrive at the next Heal, or at whatever else lets that direction pass.
// A sender sees what it would see of a real black hole: its writes succeed
// until the buffers on the way are full, and block then. Only Cut, Reset and
// Close lose what is held.
//
// Two things are not as in a real one. A connect succeeds, as the kernel
// accepts for a listener whatever becomes of the connection; and keepalive
// probes are answered, by the link's end of the connection.
package faultnet
