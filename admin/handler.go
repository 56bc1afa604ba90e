package admin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// route is a path that is served. Each kind of them has a file of its own.
type route struct {
	// path is exact, or a beginning when it ends with a slash and a name in
	// braces, as "/v1/decode/{id}"; r.PathValue has the rest then.
	path, about string
	// serve answers a GET or HEAD request.
	serve http.HandlerFunc
}

func (s *Server) routes() []route {
	return slices.Concat(s.probeRoutes(), s.statusRoutes())
}

// matches tells whether a request is for this route, and takes the path apart.
func (rt route) matches(r *http.Request) bool {
	prefix, name, ok := strings.Cut(rt.path, "{")
	if !ok {
		return r.URL.Path == rt.path
	}
	rest, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || rest == "" {
		return false
	}
	r.SetPathValue(strings.TrimSuffix(name, "}"), rest)
	return true
}

// handler routes by path as it is: http.ServeMux would redirect what it takes
// for an unclean one.
func (s *Server) handler() http.Handler {
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if v := s.cfg.About.Version; v != "" {
			h.Set("Server", "flaked/"+v)
		}
		for _, rt := range routes {
			if !rt.matches(r) {
				continue
			}
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				h.Set("Allow", "GET, HEAD")
				w.WriteHeader(http.StatusMethodNotAllowed)
				_, _ = io.WriteString(w, "only GET and HEAD\n")
				return
			}
			rt.serve(w, r)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "no such path here; there are:\n")
		for _, rt := range routes {
			fmt.Fprintf(w, "%s\t%s\n", rt.path, rt.about)
		}
	})
}
