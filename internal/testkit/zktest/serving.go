//go:build unix

package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Timeout bounds every wait for servers. Half a second is usual, but a loaded CI machine
// with two cores takes far longer.
const Timeout = 60 * time.Second

// await blocks until the servers serve as one ensemble. It fails after Timeout, or as soon as
// ended returns servers whose processes have ended. The error holds the ends of the logs.
func await(servers []*server, ended func() []*server) error {
	var problem string
	ok := Poll(Timeout, func() bool {
		if dead := ended(); len(dead) > 0 {
			problem = fmt.Sprintf("the server in %s ended by itself", dead[0].dir)
			return true
		}
		problem = notServing(servers)
		return problem == ""
	})
	if !ok {
		problem = fmt.Sprintf("not serving after %v (%s)", Timeout, problem)
	}
	if problem == "" {
		return nil
	}
	for _, s := range servers {
		problem += "\n" + strings.TrimSuffix(s.tail(), "\n")
	}
	return errors.New(problem)
}

// notServing returns the servers' modes if they do not serve as one ensemble, else "". It
// requires exactly one leader: for a moment after a leader's death its followers still report
// that they follow. It also requires that the answers are those of these servers: another
// server may have taken a port first, and ours is then about to fail.
func notServing(servers []*server) string {
	var modes []string
	leaders, followers := 0, 0
	for _, s := range servers {
		mode := s.mode()
		switch {
		case mode != "" && !strings.Contains(s.ask("conf"), "dataDir="+s.dataDir()+"/"):
			mode = "another server"
		case mode == "standalone" || mode == "leader":
			leaders++
		case mode == "follower":
			followers++
		}
		modes = append(modes, fmt.Sprintf("%s: %q", s.addr(), mode))
	}
	if leaders == 1 && leaders+followers == len(servers) {
		return ""
	}
	return strings.Join(modes, ", ")
}

// mode returns "standalone", "leader" or "follower", or "" while the server does not
// serve. It asks `srvr`, because a server answers `ruok` long before it serves.
func (s *server) mode() string {
	for line := range strings.Lines(s.ask("srvr")) {
		if mode, ok := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); ok {
			return mode
		}
	}
	return ""
}

// ask returns the answer to a four-letter word, or "" if the server does not answer
// within a second.
func (s *server) ask(word string) string {
	conn, err := net.DialTimeout("tcp", s.addr(), time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return ""
	}
	reply, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if err != nil {
		return ""
	}
	return string(reply)
}

// Poll calls ok every 20 ms and reports whether it returned true within limit.
func Poll(limit time.Duration, ok func() bool) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
