package seq

import (
	"time"
)

// minRefreshAge is the age of Record.CreditAt after which a node that uses the sequence writes the record again. The
// skip after a loss of data grows with that age. After the same time, a map key is read again, and the record of an
// exhausted sequence.
const minRefreshAge = time.Minute

// maxWrites is the most writes a second that the nodes of a cluster make for sequences, unless requests need
// more, or few positions of a sequence are left. ZooKeeper has other things to do.
const maxWrites = 500

// spread returns the shortest time between two writes of a sequence by this node, so that all nodes together
// make at most maxWrites a second. used is the number of sequences that this node uses, and nodes the number of
// nodes that may use as many. A node makes two writes in that time at most: a block and a refresh.
func spread(used, nodes int64) time.Duration {
	return time.Duration(2*used*max(nodes, 1)) * time.Second / maxWrites
}

// refreshesAtOnce returns the most records that a node refreshes in one round. Without this bound, it would refresh all
// records that were first written at one moment together, each time.
func refreshesAtOnce(heartbeat time.Duration, nodes int64) int {
	return max(1, int(int64(maxWrites/2*heartbeat.Seconds())/max(nodes, 1)))
}

// refreshInterval returns the age of a record after which it is written again. It grows with idle, the time for
// which nobody has asked for values: an idle sequence is refreshed ever more rarely.
func refreshInterval(spread, idle time.Duration) time.Duration {
	return max(minRefreshAge, spread, idle/10)
}
