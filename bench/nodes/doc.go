//go:build linux

// Command nodes measures the load of flaked nodes on ZooKeeper, and the time until many
// nodes that start at once are ready. It starts a ZooKeeper and real nodes, and takes the
// load from ZooKeeper's own counters (mntr and srvr).
package main
