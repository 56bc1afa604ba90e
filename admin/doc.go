// Package admin serves HTTP for a node: liveness and readiness probes, metrics, status
// documents, a status page, and IDs in JSON. It listens on a port of its own, never on
// the port of the line protocol.
package admin
