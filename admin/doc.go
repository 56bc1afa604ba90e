// Package admin serves HTTP for a node: liveness and readiness probes, metrics, status
// documents, a status page, and IDs in JSON. It never shares a port with the line protocol.
//
// A program with a node of package flaked mounts it on its own HTTP server:
//
//	server, err := admin.New(admin.Of(node))
//	...
//	go server.Run(ctx)
//	mux.Handle("/flaked/", http.StripPrefix("/flaked", server.Handler()))
//
// Serve listens on a port of its own instead, as the daemon flaked does. docs/http.md lists the paths.
package admin
