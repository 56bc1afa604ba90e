//go:build unix

package zktest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// cluster is a set of servers. It belongs to no test: each Ensemble is a cluster and
// a test that uses it.
type cluster struct {
	mu      sync.Mutex // guards the servers' processes: cmd and frozen
	servers []*server
	release []func() // give the ports back
}

// launch starts n servers in dir and waits until they serve.
func launch(prog Program, dir string, n int) (_ *cluster, err error) {
	c := &cluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	var all []*Server
	for i := range n {
		s := &server{prog: prog, Server: Server{ID: i + 1, Dir: filepath.Join(dir, fmt.Sprintf("zk%d", i))}}
		for _, p := range []*int{&s.Client, &s.Quorum, &s.Election} {
			var release func()
			if *p, release, err = takePort(); err != nil {
				return nil, err
			}
			c.release = append(c.release, release)
		}
		c.servers = append(c.servers, s)
		all = append(all, &s.Server)
	}
	for _, s := range all {
		if err := s.Configure(all); err != nil {
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
	for _, release := range c.release {
		release()
	}
}

// reachable returns the servers that run and are not frozen.
func (c *cluster) reachable() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	var up []*Server
	for _, s := range c.servers {
		if s.cmd != nil && !s.frozen {
			up = append(up, &s.Server)
		}
	}
	return up
}

// ended returns the servers whose processes have ended by themselves.
func (c *cluster) ended() (dead []*Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.cmd != nil && exited(s.cmd.Process.Pid) {
			dead = append(dead, &s.Server)
		}
	}
	return dead
}

// await blocks until all servers that run and are not frozen serve as one ensemble.
// It fails at once if there is no quorum or if a server has ended by itself, and
// otherwise after Timeout.
func (c *cluster) await() error {
	up := c.reachable()
	if 2*len(up) <= len(c.servers) {
		return fmt.Errorf("%d of %d servers run: no quorum", len(up), len(c.servers))
	}
	return Await(up, c.ended)
}

// tail returns the last lines of every server's log.
func (c *cluster) tail() string {
	var b strings.Builder
	for _, s := range c.servers {
		b.WriteString(s.Tail())
	}
	return b.String()
}
