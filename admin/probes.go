package admin

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

func (s *Server) probeRoutes() []route {
	return []route{
		{path: "/livez", about: "200 while the process does its work; for a liveness probe", open: true, free: true, serve: s.livez},
		{path: "/readyz", about: "200 when GET is answered with an ID, else 503 and the reason; for a readiness probe; ?verbose: all that there is to it", open: true, free: true, serve: s.readyz},
	}
}

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) { verdict(w, s.cfg.Live(), "") }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	err := s.cfg.Ready()
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		verdict(w, err, checks(s.cfg.Workers()))
		return
	}
	verdict(w, err, "")
}

// verdict answers with an error that is nil when all is well, else the reason,
// below whatever there is to say of it. A HEAD request gets the status without
// it: net/http drops the body.
func verdict(w http.ResponseWriter, err error, above string) {
	answer := "ok"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = oneLine(err.Error())
	}
	_, _ = io.WriteString(w, above+answer+"\n")
}

// checks is a line for each thing that serving depends on: [+] is well, [-] is
// why the node refuses, [!] is not well and no reason to.
func checks(workers []node.Snapshot) string {
	var b strings.Builder
	for _, s := range workers {
		prefix := ""
		if len(workers) > 1 {
			prefix = "worker " + label(s) + " "
		}
		line := func(mark, what, format string, a ...any) {
			fmt.Fprintf(&b, "[%s] %s%s: %s\n", mark, prefix, what, oneLine(fmt.Sprintf(format, a...)))
		}
		mark := func(ok bool, or string) string {
			if ok {
				return "+"
			}
			return or
		}
		switch {
		case s.Worker == nil:
			line("-", "worker", "none yet, %s", s.Phase)
		case s.Ready:
			line("+", "worker", "%d, %s", *s.Worker, s.Phase)
		default:
			line("-", "worker", "%d, %s: -%s %s", *s.Worker, s.Phase, s.Code, s.Reason)
		}
		if s.Worker != nil {
			line(mark(*s.LeaseLeftMs > 0, "-"), "lease", "%s left", span(*s.LeaseLeftMs))
			line(mark(*s.ReservedLeftMs > 0, "-"), "bound on the disk", "%s left", span(*s.ReservedLeftMs))
		}
		if s.Disk.OK {
			line("+", "state directory", "ok")
		} else {
			line("!", "state directory", "%s", s.Disk.Error)
		}
		c := s.Clock
		switch {
		case c.Wrong:
			line("-", "clock", "%s off, by %d of %d voters", signed(*c.OffsetMs), c.Against, c.Voters)
		case c.BehindMs > 0:
			line("-", "clock", "%s behind the last ID", span(c.BehindMs))
		case c.UnfollowedLeapMs > 0:
			line("!", "clock", "has leapt %s ahead, which nobody confirms", span(c.UnfollowedLeapMs))
		case c.OffsetMs == nil:
			line("+", "clock", "not compared yet")
		default:
			bad := false
			for _, t := range s.Degraded {
				bad = bad || t == node.TroubleOffset
			}
			line(mark(!bad, "!"), "clock", "%s +- %s against ZooKeeper's leader, %s against the worst of %d voters",
				signed(*c.OffsetMs), span(int64(*c.ErrorMs)), signed(*c.WorstMs), c.Voters)
		}
		switch {
		case s.ZooKeeper.Error != "":
			line("!", "zookeeper", "%s", s.ZooKeeper.Error)
		case s.ZooKeeper.HeartbeatAgeMs == nil:
			line("!", "zookeeper", "no heartbeat yet")
		default:
			line("+", "zookeeper", "last heartbeat %s ago", span(*s.ZooKeeper.HeartbeatAgeMs))
		}
	}
	return b.String()
}

func span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func signed(ms float64) string { return fmt.Sprintf("%+.1fms", ms) }

// oneLine keeps a reason to one line, which is what a log of probes shows.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
