package admin

import (
	"io"
	"net/http"
	"strings"
)

func (s *Server) probeRoutes() []route {
	return []route{
		{"/livez", "200 while the process does its work; for a liveness probe", probe(s.cfg.Live)},
		{"/readyz", "200 when GET is answered with an ID, else 503 and the reason; for a readiness probe", probe(s.cfg.Ready)},
	}
}

// probe answers with a check that is nil when all is well, else the reason. A
// HEAD request gets the status without it: net/http drops the body.
func probe(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, oneLine(err.Error())+"\n")
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	}
}

// oneLine keeps a reason to one line, which is what a log of probes shows.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
