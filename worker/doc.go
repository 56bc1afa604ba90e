// Package worker is what an ID is and how it is made: the layout of its bits
// and the generator that counts them up. It does no I/O and knows nothing of
// ZooKeeper.
package worker
