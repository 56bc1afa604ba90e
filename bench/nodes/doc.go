// Nodes measures what flaked nodes cost ZooKeeper, and how soon many that start at
// once are ready. It starts a ZooKeeper and real processes, and takes the figures from
// ZooKeeper's own counters (mntr).
package main
