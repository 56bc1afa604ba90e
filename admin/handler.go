package admin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/lineproto"
)

// route is a path that is served. Each kind of them has a file of its own.
type route struct {
	// path is exact, or a beginning when it ends with a slash and a name in
	// braces, as "/v1/decode/{id}"; r.PathValue has the rest then.
	path, about string
	// open: for those who bring no token, too.
	open bool
	// free: takes none of the places for requests, as it is done at once or has
	// places of its own.
	free bool
	// waits: mostly waits for something, so it takes a place for those that do.
	waits bool
	// linked: another site's page may lead a browser here.
	linked bool
	// methods are those that serve answers; none: GET and HEAD.
	methods []string
	serve   http.HandlerFunc
}

func (s *Server) routes() []route {
	return slices.Concat(s.probeRoutes(), s.metricsRoutes(), s.statusRoutes(), s.workersRoutes(), s.idRoutes(), s.leafRoutes(), s.pprofRoutes(), s.pageRoutes())
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
	const maxBody = 64 << 10 // far more than any request brings
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if v := s.cfg.About.Version; v != "" {
			h.Set("Server", "flaked/"+v)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		at := slices.IndexFunc(routes, func(rt route) bool { return rt.matches(r) })
		counted := &countedWriter{ResponseWriter: w}
		path := "other"
		defer func() { s.requests.add(path, counted.code()) }()
		w = counted
		if at < 0 {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "no such path here; there are:\n")
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
			_, _ = io.WriteString(w, "only "+strings.Join(methods, " and ")+"\n")
			return
		}
		if rt.open || s.admit(w, r, rt.linked) {
			s.serve(w, r, rt)
		}
	})
}

// serve has a route answer, once there is a place for that. A connection that
// waits for one is as good as idle.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) {
	c := connOf(r.Context())
	if !rt.free {
		places := s.answers
		if rt.waits {
			places = s.waits
		}
		leave := places.take(r.Context(), c.from)
		if leave == nil {
			all, one := places.limits()
			writeError(w, &lineproto.Error{Code: lineproto.BUSY, Text: fmt.Sprintf("too many requests at once limit=%d limit_of_one_address=%d", all, one)})
			return
		}
		defer leave()
	}
	c.answer(true)
	defer c.answer(false)
	rt.serve(w, r)
}

// countedWriter remembers the status.
type countedWriter struct {
	http.ResponseWriter
	status atomic.Int64
}

func (w *countedWriter) WriteHeader(status int) {
	w.status.CompareAndSwap(0, int64(status))
	w.ResponseWriter.WriteHeader(status)
}

func (w *countedWriter) code() int {
	if status := w.status.Load(); status != 0 {
		return int(status)
	}
	return http.StatusOK
}

// Unwrap is for http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
