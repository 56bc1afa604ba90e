//go:build linux

// Command storm measures what three ZooKeeper servers bear: a thousand nodes that start at once,
// that are all killed and come back, that run, and whose ZooKeeper loses its leader. It also
// measures how long it takes to read the state of such a cluster. `make storm` runs it.
//
// All nodes are in one process, with a session and a state directory each. One of them serves its
// page, and the others have no ports. So storm measures ZooKeeper and not a thousand processes.
//
// It fails if an ID was issued twice, if two nodes have one worker, if a node does not come back
// with its own worker, or if a node ends.
package main
