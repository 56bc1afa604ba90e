package web

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// Handler returns a handler with the same paths as Serve, for a program that has an HTTP server of
// its own. To mount it under a prefix, use mux.Handle("/flaked/", http.StripPrefix("/flaked",
// handler)). The handler answers every request that Config admits, so the program has to decide who
// may reach it. Run must be running while the handler is in use.
//
// It compares paths unchanged. http.ServeMux would redirect a path that it considers unclean.
func (s *Server) Handler() http.Handler {
	const maxBody = 64 << 10 // far more than any request needs
	routes := s.routes()
	headers := http.Header{ // their values are shared by all requests
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
		"Server":                 {"flaked/" + s.cfg.About.Version},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		maps.Copy(h, headers)
		if r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		at := slices.IndexFunc(routes, func(rt route) bool { return rt.matches(r) })
		counted := &countedWriter{ResponseWriter: w}
		path := "other"
		defer func() {
			s.requests.WithLabelValues(path, strconv.Itoa(cmp.Or(counted.status, http.StatusOK))).Inc()
		}()
		w = counted
		if at < 0 {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "path not found. Paths:\n")
			for _, rt := range routes {
				fmt.Fprintf(w, "%s\t%s\n", rt.path, rt.about)
			}
			return
		}
		rt := routes[at]
		path = rt.path
		methods := rt.methods
		if methods == nil {
			methods = []string{http.MethodGet, http.MethodHead}
		}
		if !slices.Contains(methods, r.Method) {
			h.Set("Allow", strings.Join(methods, ", "))
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = io.WriteString(w, "method not allowed. Use "+strings.Join(methods, " or ")+".\n")
			return
		}
		if !rt.open {
			r = s.admit(w, r, rt.linked)
		}
		if r != nil {
			s.serve(w, r, rt)
		}
	})
}

// serve calls the handler of a route once a place is free, or answers BUSY. A connection
// that waits for a place counts as idle, so it may be closed to make room for another.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) {
	c := connOf(r.Context())
	if !rt.free {
		places := s.answers
		if rt.waits {
			places = s.waits
		}
		if !places.take(r.Context()) {
			writeError(w, replies.New(ids.BUSY,
				fmt.Sprintf("too many simultaneous requests. Retry. limit=%d", cap(places))))
			return
		}
		defer places.leave()
	}
	c.answer(true)
	defer c.answer(false)
	rt.serve(w, r)
}

// countedWriter keeps the status of a response, for the metrics.
type countedWriter struct {
	http.ResponseWriter
	status int
}

func (w *countedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
