// Package admin gives a program with a node of package flaked what the daemon flaked serves over HTTP: liveness and
// readiness probes, metrics, status documents, a status page, and IDs in JSON. The program mounts it on its own server:
//
//	server, err := admin.New(admin.Config{Node: node})
//	...
//	go server.Run(ctx)
//	mux.Handle("/flaked/", http.StripPrefix("/flaked", server.Handler()))
//
// docs/http.md lists the paths.
package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
)

// Config configures New.
type Config struct {
	// Node is the node to show. It is required.
	Node *flaked.Node
	// LineProtocol is the server of the node's line protocol. The metrics and the page then count its requests, and
	// requests for IDs over HTTP take turns with its connections. nil means that there is none.
	LineProtocol *lineproto.Server
	// Authenticate reports whether a token is valid, and returns the sequences that the client may use. It is called
	// for every request but those for probes, metrics and the style, script and icon of the page. It must be safe for
	// concurrent use. nil means that no token is needed: everybody who reaches the handler gets an answer.
	Authenticate func(token []byte) (rights *sequence.Rights, ok bool)
}

// Server answers HTTP requests. Make it with New.
type Server struct{ web *web.Server }

// New returns a Server, or an error if cfg is invalid. It does no I/O.
func New(cfg Config) (*Server, error) {
	if cfg.Node == nil {
		return nil, errors.New("admin: Config.Node is nil: give the node to show")
	}
	inner := web.Of((*app.Node)(cfg.Node))
	inner.Authenticate = cfg.Authenticate
	if cfg.LineProtocol != nil {
		inner.Counters, inner.Reserve = cfg.LineProtocol.Counters, cfg.LineProtocol.Reserve
	}
	return &Server{web.New(inner)}, nil
}

// Handler returns a handler with the paths of docs/http.md. To mount it under a prefix, use
// mux.Handle("/flaked/", http.StripPrefix("/flaked", handler)). The program decides who may reach it. Run must be
// running while the handler is in use.
//
// It compares paths unchanged. http.ServeMux would redirect a path that it considers unclean.
func (s *Server) Handler() http.Handler { return s.web.Handler() }

// Collector returns a collector of the metrics of docs/http.md, without those of Go and of the process, for the
// registry of the program. Run must be running while it is registered.
func (s *Server) Collector() prometheus.Collector { return s.web.Collector() }

// Run reads the cluster's workers from ZooKeeper, for the page and the metrics, and samples the node's counters for the
// page, until ctx is done. Call it once, in a goroutine, and end it before the node is closed.
func (s *Server) Run(ctx context.Context) { s.web.Run(ctx) }

// StatusLine returns the JSON of /v1/status in one line, for lineproto.Config.Status.
// With peers, it names the nodes that this one has met.
func (s *Server) StatusLine(peers bool) string { return s.web.StatusLine(peers) }
