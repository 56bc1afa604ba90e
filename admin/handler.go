package admin

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// endpoint is one path that is served.
type endpoint struct {
	path, about string
	// check is nil when all is well, else the reason, which is sent with 503.
	check func() error
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"/livez", "200 while the process does its work; for a liveness probe", s.cfg.Live},
		{"/readyz", "200 when GET is answered with an ID, else 503 and the reason; for a readiness probe", s.cfg.Ready},
	}
}

// handler routes by exact path: http.ServeMux would redirect what it takes for
// an unclean one.
func (s *Server) handler() http.Handler {
	endpoints := s.endpoints()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if s.cfg.Version != "" {
			h.Set("Server", "flaked/"+s.cfg.Version)
		}
		for _, e := range endpoints {
			if r.URL.Path == e.path {
				answer(w, r, e)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "no such path here; there are:\n")
		for _, e := range endpoints {
			fmt.Fprintf(w, "%s\t%s\n", e.path, e.about)
		}
	})
}

// answer runs a check. A HEAD request gets the status without the reason:
// net/http drops the body.
func answer(w http.ResponseWriter, r *http.Request, e endpoint) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, "only GET and HEAD\n")
		return
	}
	if err := e.check(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, oneLine(err.Error())+"\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// oneLine keeps a reason to one line, which is what a log of probes shows.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
