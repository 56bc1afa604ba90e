// Package dialog is the side of a client in the line protocol: addresses, connections, and the question which cluster
// answers. Programs, commands, and nodes that ask nodes use it.
package dialog
