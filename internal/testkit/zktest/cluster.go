package zktest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// serveTimeout bounds every wait for servers. Half a second is usual, but a loaded
// CI machine with two cores takes far longer.
const serveTimeout = 60 * time.Second

// cluster is a set of servers. It belongs to no test: each Ensemble is a cluster and
// a test that uses it.
type cluster struct {
	mu      sync.Mutex // guards the servers' processes: cmd and frozen
	servers []*server
}

// launch starts n servers in dir and waits until they serve. Without clocks the
// servers go by the machine's clock, else server i goes by clocks[i].
func launch(prog program, dir string, n int, clocks ...*ownclock.Clock) (_ *cluster, err error) {
	c := &cluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i := range n {
		s := &server{prog: prog, id: i + 1, dir: filepath.Join(dir, fmt.Sprintf("zk%d", i))}
		if len(clocks) > 0 {
			s.clock = clocks[i]
		}
		c.servers = append(c.servers, s)
		if s.client, err = takePort(); err != nil {
			return nil, err
		}
		if n > 1 {
			if s.quorum, err = takePort(); err != nil {
				return nil, err
			}
			if s.elect, err = takePort(); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range c.servers {
		if err := s.configure(c.servers); err != nil {
			return nil, err
		}
	}
	if err := c.startAll(); err != nil {
		return nil, err
	}
	return c, c.await()
}

// startAll starts the servers that do not run.
func (c *cluster) startAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.cmd == nil {
			if err := s.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// killAll kills the servers that run.
func (c *cluster) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.cmd != nil {
			s.kill()
		}
	}
}

// close kills the servers and gives the ports back.
func (c *cluster) close() {
	c.killAll()
	for _, s := range c.servers {
		for _, p := range []*port{s.client, s.quorum, s.elect} {
			if p != nil {
				p.release()
			}
		}
	}
}

// reachable returns the servers that run and are not frozen.
func (c *cluster) reachable() []*server {
	c.mu.Lock()
	defer c.mu.Unlock()
	var up []*server
	for _, s := range c.servers {
		if s.cmd != nil && !s.frozen {
			up = append(up, s)
		}
	}
	return up
}

// ended returns a server whose process has ended by itself, or nil.
func (c *cluster) ended() *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.cmd != nil && exited(s.cmd.Process.Pid) {
			return s
		}
	}
	return nil
}

// await blocks until all servers that run and are not frozen serve as one ensemble.
// It requires exactly one leader: for a moment after a leader's death its followers
// still report that they follow. It fails at once if there is no quorum or if a
// server has ended by itself, and otherwise after serveTimeout.
func (c *cluster) await() error {
	up := c.reachable()
	if 2*len(up) <= len(c.servers) {
		return fmt.Errorf("%d of %d servers run: no quorum", len(up), len(c.servers))
	}
	var failure error
	var modes []string
	ok := poll(serveTimeout, func() bool {
		if s := c.ended(); s != nil {
			failure = fmt.Errorf("server %d ended by itself", s.id-1)
			return true
		}
		modes = modes[:0]
		leaders, followers := 0, 0
		for _, s := range up {
			m := s.mode()
			modes = append(modes, fmt.Sprintf("%d: %q", s.id-1, m))
			switch m {
			case "standalone", "leader":
				leaders++
			case "follower":
				followers++
			}
		}
		if leaders != 1 || leaders+followers != len(up) {
			return false
		}
		for _, s := range up {
			if !s.answersItself() {
				return false
			}
		}
		return true
	})
	if !ok {
		failure = fmt.Errorf("not serving after %v (%s)", serveTimeout, strings.Join(modes, ", "))
	}
	if failure != nil {
		return errors.Join(failure, errors.New(c.tail()))
	}
	return nil
}

// tail returns the last lines of every server's log.
func (c *cluster) tail() string {
	var b strings.Builder
	for _, s := range c.servers {
		fmt.Fprintf(&b, "--- the end of the log of ZooKeeper %d (%s)\n%s\n", s.id-1, s.addr(), s.tail())
	}
	return b.String()
}
