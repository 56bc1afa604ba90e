// Package worker defines the IDs and makes them: the layout of an ID's bits, the text forms
// of an ID, and the generator. It does no I/O and knows nothing of ZooKeeper.
package worker
