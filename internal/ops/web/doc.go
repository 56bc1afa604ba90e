// Package web serves HTTP for a node: liveness and readiness probes, metrics, status
// documents, a status page, and IDs in JSON. It never shares a port with the line protocol.
//
// Server.Serve listens on a port of its own, as the daemon flaked does. Package admin gives other programs
// Server.Handler. docs/http.md lists the paths.
package web
