package web

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/words"
)

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) { verdict(w, s.cfg.Live(), "") }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	err := s.cfg.Ready()
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		verdict(w, err, checks(s.Status()))
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
		answer = replies.OneLine(err.Error())
	}
	_, _ = io.WriteString(w, above+answer+"\n")
}

// checks returns one line for each thing that serving depends on, then the problems. [+] means good, [-] that
// the node refuses because of it, [!] that it is bad but the node may not refuse for it.
func checks(doc Status) string {
	var b strings.Builder
	s, w := doc.Node, describeOwn(doc.Node)
	line := func(good bool, bad, what, text string) {
		if good {
			bad = "+"
		}
		fmt.Fprintf(&b, "[%s] %s: %s\n", bad, what, replies.OneLine(text))
	}
	line(s.Ready, "-", "worker", label(s)+", "+string(s.Phase))
	if s.LeaseLeftMs != nil {
		line(*s.LeaseLeftMs > 0, "-", "lease", words.Duration(*s.LeaseLeftMs)+" left")
		line(*s.ReservedLeftMs > 0, "-", "reserved bound", words.Duration(*s.ReservedLeftMs)+" left")
	}
	line(s.Disk.OK, "!", "state directory", cmp.Or(s.Disk.Error, "ok"))
	line(!w.ClockTrouble(), "!", "clock", w.Clock)
	heartbeat := "last heartbeat " + w.Beat
	if s.ZooKeeper.HeartbeatAgeMs == nil {
		heartbeat = "no heartbeat yet"
	}
	if !s.ZooKeeper.Session { // a heartbeat fails only when it has waited for a connection
		heartbeat = "no connection, " + heartbeat
	}
	line(s.ZooKeeper.Error == "" && s.ZooKeeper.Session && !w.CutOff(), "!", "zookeeper",
		cmp.Or(s.ZooKeeper.Error, heartbeat))
	for _, p := range doc.Problems {
		b.WriteString(replies.OneLine(p.String()) + "\n")
	}
	return b.String()
}
