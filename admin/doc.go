// Package admin is what a node says over HTTP: whether it lives and whether it
// can serve, and what it knows of itself. It listens beside the line protocol,
// never on the same port.
package admin
