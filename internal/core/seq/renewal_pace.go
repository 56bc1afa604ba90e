package seq

import (
	"time"
)

// minRenewAge is the age of Record.CreditAt after which a node that uses the sequence writes the record again. The skip
// after a loss of data grows with that age. A map key is read again after the same time.
const minRenewAge = time.Minute

// maxWrites is the most writes a second that the nodes of a cluster make for sequences, unless requests need
// more. ZooKeeper has other things to do.
const maxWrites = 500

// spread returns the shortest time between two writes of a sequence by this node, so that all nodes together
// make at most maxWrites a second. used is the number of sequences that this node uses, and nodes the number of
// nodes that may use as many. A node makes two writes in that time at most: a block and a renewal.
func spread(used, nodes int64) time.Duration {
	return time.Duration(2*used*max(nodes, 1)) * time.Second / maxWrites
}

// renewalsAtOnce returns the most records that a node renews in one round. Without this bound, it would renew all
// records that were first written at one moment together, each time.
func renewalsAtOnce(heartbeat time.Duration, nodes int64) int {
	return max(1, int(int64(maxWrites/2*heartbeat.Seconds())/max(nodes, 1)))
}

// renewalInterval returns the age of a record after which it is written again. It grows with idle, the time for
// which nobody has asked for values: an idle sequence is renewed ever more rarely.
func renewalInterval(spread, idle time.Duration) time.Duration {
	return max(minRenewAge, spread, idle/10)
}
