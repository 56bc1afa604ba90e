// Package positions has what the nodes decide about the positions of named sequences, without I/O: blocks of
// positions and their sizes, the stock of a node, the rate ceiling, and the places of names in ZooKeeper and in
// families.
package positions
