// Package store reads and writes small versioned records. Store is the interface. ZK
// keeps the records in a real ZooKeeper. Mem keeps them in memory, for development and for
// tests that inject faults. The package does not interpret the records, and a GET never
// calls it. Outside test support, no other package imports go-zookeeper.
package store
