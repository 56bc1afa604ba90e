// Command storm measures what three ZooKeeper servers bear: a thousand nodes that start at once,
// that are all killed and come back, that run, and whose ZooKeeper loses its leader. All nodes
// are in one process, with a session and a state directory each and without ports, so that it
// measures ZooKeeper and not a thousand processes. `make storm` runs it.
//
// It fails if an ID was issued twice, if two nodes have one worker, if a node does not come back
// with its own worker, or if a node ends.
package main
