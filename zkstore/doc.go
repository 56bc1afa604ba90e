// Package zkstore reads and writes small records with versions: Store is the
// interface, ZK keeps the records in a real ZooKeeper, and Mem keeps them in
// memory, for development and for tests that need faults. The package does not
// know what the records mean, and it is never on the path of a GET. Outside test
// support, no other package imports go-zookeeper.
package zkstore
