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
func launch(prog program, dir string, n int) (_ *cluster, err error) {
	c := &cluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i := range n {
		s := &server{prog: prog, id: i + 1, dir: filepath.Join(dir, fmt.Sprintf("zk%d", i))}
		for _, p := range []*int{&s.client, &s.quorum, &s.election, &s.admin} {
			var release func()
			if *p, release, err = takePort(); err != nil {
				return nil, err
			}
			c.release = append(c.release, release)
		}
		c.servers = append(c.servers, s)
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
	for _, release := range c.release {
		release()
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

// ended returns the servers whose processes have ended by themselves.
func (c *cluster) ended() (dead []*server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if s.cmd != nil && exited(s.cmd.Process.Pid) {
			dead = append(dead, s)
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
	return await(up, c.ended)
}

// tail returns the last lines of every server's log.
func (c *cluster) tail() string {
	var b strings.Builder
	for _, s := range c.servers {
		b.WriteString(s.tail())
	}
	return b.String()
}
