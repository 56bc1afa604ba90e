package admin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/node"
)

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) { verdict(w, s.cfg.Live(), "") }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	err := s.cfg.Ready()
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		verdict(w, err, checks(s.cfg.Node()))
		return
	}
	verdict(w, err, "")
}

// verdict answers 200 and "ok" if err is nil, and 503 and the error otherwise. The text
// above comes first. For a HEAD request net/http drops the body.
func verdict(w http.ResponseWriter, err error, above string) {
	answer := "ok"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = oneLine(err.Error())
	}
	_, _ = io.WriteString(w, above+answer+"\n")
}

// checks returns one line for each thing that serving depends on. [+] means good, [-] that
// the node refuses because of it, [!] that it is bad but the node does not refuse for it.
func checks(s node.Snapshot) string {
	var b strings.Builder
	line := func(mark, what, format string, a ...any) {
		fmt.Fprintf(&b, "[%s] %s: %s\n", mark, what, oneLine(fmt.Sprintf(format, a...)))
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
		line(mark(*s.ReservedLeftMs > 0, "-"), "reserved bound", "%s left", span(*s.ReservedLeftMs))
	}
	if s.Disk.OK {
		line("+", "state directory", "ok")
	} else {
		line("!", "state directory", "%s", s.Disk.Error)
	}
	c := s.Clock
	switch {
	case c.Wrong:
		line("-", "clock", "wrong according to %d of %d voters: offset %s", c.Against, c.Voters, signed(*c.OffsetMs))
	case c.BehindMs > 0:
		line("-", "clock", "%s behind the last ID", span(c.BehindMs))
	case c.UnfollowedLeapMs > 0:
		line("!", "clock", "leapt %s ahead, not confirmed by any other clock", span(c.UnfollowedLeapMs))
	case c.OffsetMs == nil:
		line("+", "clock", "not compared yet")
	default:
		bad := slices.Contains(s.Degraded, node.TroubleOffset)
		line(mark(!bad, "!"), "clock", "%s +- %s against ZooKeeper's leader, %s against the worst of %d voters",
			signed(*c.OffsetMs), span(int64(*c.UncertaintyMs)), signed(*c.WorstMs), c.Voters)
	}
	switch {
	case s.ZooKeeper.Error != "":
		line("!", "zookeeper", "%s", s.ZooKeeper.Error)
	case s.ZooKeeper.HeartbeatAgeMs == nil:
		line("!", "zookeeper", "no heartbeat yet")
	default:
		line("+", "zookeeper", "last heartbeat %s ago", span(*s.ZooKeeper.HeartbeatAgeMs))
	}
	return b.String()
}

func span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func signed(ms float64) string { return fmt.Sprintf("%+.1fms", ms) }

// oneLine replaces line breaks by spaces: a log of probes shows one line of a reason.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
