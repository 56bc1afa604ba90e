//go:build unix

package zktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// cluster is a set of servers. It belongs to no test: each Ensemble is a cluster and
// a test that uses it.
type cluster struct {
	mu      sync.Mutex // guards the servers' processes: cmd and frozen
	servers []*server
	release []func() // give the ports back
}

// launch starts n servers in dir and waits until they serve. settings are further lines of zoo.cfg.
func launch(prog program, dir string, n int, settings []string) (_ *cluster, err error) {
	c := &cluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i := range n {
		s := &server{prog: prog, id: i + 1, dir: filepath.Join(dir, fmt.Sprintf("zk%d", i))}
		for _, p := range []*int{&s.client, &s.secure, &s.quorum, &s.election} {
			var release func()
			if *p, release, err = takePort(); err != nil {
				return nil, err
			}
			c.release = append(c.release, release)
		}
		c.servers = append(c.servers, s)
	}
	for _, s := range c.servers {
		if err := s.configure(c.servers, settings); err != nil {
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

// Ensemble is one server or three, for the use of a test. Any goroutine may call
// its methods, except those that take a testing.TB. Those may end the test, so only
// the test's own goroutine may call them.
type Ensemble struct {
	tb      testing.TB
	cluster *cluster
	shared  bool // other tests use it too
}

// Addr returns the connect string: host:port of all servers, joined by commas.
func (e *Ensemble) Addr() string { return strings.Join(e.Addrs(), ",") }

// SecureAddr is Addr, of the ports that take TLS.
func (e *Ensemble) SecureAddr() string {
	var addrs []string
	for _, s := range e.cluster.servers {
		addrs = append(addrs, "127.0.0.1:"+strconv.Itoa(s.secure))
	}
	return strings.Join(addrs, ",")
}

// Addrs returns the servers' client addresses, host:port. They stay the same over
// kills and restarts.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for _, s := range e.cluster.servers {
		addrs = append(addrs, s.addr())
	}
	return addrs
}

// Kill ends server i by SIGKILL and returns when it is dead.
func (e *Ensemble) Kill(i int) { e.tb.Helper(); e.each(i, (*server).kill) }

// Stop ends server i by SIGTERM and returns when it is down.
func (e *Ensemble) Stop(i int) { e.tb.Helper(); e.each(i, (*server).stop) }

// Start starts server i again, on its old ports and data. It does not wait until
// the server serves, because there may be no quorum yet. WaitServing waits.
func (e *Ensemble) Start(i int) { e.tb.Helper(); e.each(i, (*server).start) }

// Freeze stops server i by SIGSTOP. The server keeps its connections and never
// answers. The kernel still accepts new connections for it. No thread of the server
// runs after Freeze has returned.
func (e *Ensemble) Freeze(i int) { e.tb.Helper(); e.each(i, (*server).freeze) }

// Thaw lets a frozen server i run on.
func (e *Ensemble) Thaw(i int) { e.tb.Helper(); e.each(i, (*server).thaw) }

// each calls what with server i. An error marks the test as failed and does not end
// it, because only the test's own goroutine may end a test.
func (e *Ensemble) each(i int, what func(*server) error) {
	e.tb.Helper()
	if err := e.mine(); err != nil {
		e.tb.Errorf("zktest: %v", err)
		return
	}
	if i < 0 || i >= len(e.cluster.servers) {
		e.tb.Errorf("zktest: no server %d: they are numbered from 0 to %d", i, len(e.cluster.servers)-1)
		return
	}
	e.cluster.mu.Lock()
	defer e.cluster.mu.Unlock()
	if err := what(e.cluster.servers[i]); err != nil {
		e.tb.Errorf("zktest: %v", err)
	}
}

func (e *Ensemble) mine() error {
	if e.shared {
		return errors.New("this server is shared with other tests; break one of your own (Single)")
	}
	return nil
}

// WaitServing blocks until all servers that run and are not frozen serve, with a
// leader among them. If they have no quorum, it fails the test at once.
func (e *Ensemble) WaitServing(t testing.TB) {
	t.Helper()
	if err := e.cluster.await(); err != nil {
		t.Fatalf("zktest: %v", err)
	}
}

// Leader blocks until a server leads, and returns the number of that server. A
// single server counts as the leader.
func (e *Ensemble) Leader(t testing.TB) int {
	t.Helper()
	leader := -1
	ok := Poll(Timeout, func() bool {
		for _, s := range e.cluster.reachable() {
			if m := s.mode(); m == "leader" || m == "standalone" {
				leader = s.id - 1
				return true
			}
		}
		return false
	})
	if !ok {
		t.Fatalf("zktest: no leader after %v\n%s", Timeout, e.cluster.tail())
	}
	return leader
}

// Wipe kills all servers, deletes their data and starts them again, as after the
// loss of all disks. It returns when the servers serve. Chroots are gone. A client
// that was connected before never reconnects by itself: it has seen a later
// transaction than the servers know of.
func (e *Ensemble) Wipe(t testing.TB) {
	t.Helper()
	e.replaceData(t, func(s *server) error { return os.RemoveAll(s.versionDir()) })
}

// Snapshot copies all servers' data, as a backup would, and returns the copy's
// directory, which lasts as long as the test. It kills the servers, starts them
// again and returns when they serve.
func (e *Ensemble) Snapshot(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	e.replaceData(t, func(s *server) error {
		return os.CopyFS(backup(dir, s), os.DirFS(s.versionDir()))
	})
	return dir
}

// Backup copies the data of server i while it runs, as docs/operate.md says, and returns a
// directory for Restore, which gives this copy to every server.
func (e *Ensemble) Backup(t testing.TB, i int) string {
	t.Helper()
	dir := t.TempDir()
	from := os.DirFS(e.cluster.servers[i].versionDir())
	// Snapshots come before logs, so that the logs cover what a snapshot lacks.
	for _, pattern := range []string{"snapshot.*", "log.*", "*Epoch"} {
		names, err := fs.Glob(from, pattern)
		if err != nil {
			t.Fatalf("zktest: %v", err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(from, name)
			if err != nil {
				t.Fatalf("zktest: copying a running server's data: %v", err)
			}
			for _, s := range e.cluster.servers {
				if err := writeUnder(backup(dir, s), name, data); err != nil {
					t.Fatalf("zktest: %v", err)
				}
			}
		}
	}
	return dir
}

func writeUnder(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}

// Restore puts back a copy that Snapshot or Backup made of this ensemble, or of another of
// the same size, as after a restore from an old backup. It kills the servers, starts
// them again and returns when they serve.
func (e *Ensemble) Restore(t testing.TB, snapshot string) {
	t.Helper()
	// Check the whole snapshot before any server is killed.
	for _, s := range e.cluster.servers {
		if _, err := os.Stat(backup(snapshot, s)); err != nil {
			t.Fatalf("zktest: no snapshot of %d servers: %v", len(e.cluster.servers), err)
		}
	}
	e.replaceData(t, func(s *server) error {
		if err := os.RemoveAll(s.versionDir()); err != nil {
			return err
		}
		return os.CopyFS(s.versionDir(), os.DirFS(backup(snapshot, s)))
	})
}

func backup(dir string, s *server) string { return filepath.Join(dir, fmt.Sprintf("zk%d", s.id-1)) }

// replaceData kills all servers, calls what with each of them, starts all and waits
// until they serve.
func (e *Ensemble) replaceData(t testing.TB, what func(*server) error) {
	t.Helper()
	if err := e.mine(); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	e.cluster.killAll()
	for _, s := range e.cluster.servers {
		if err := what(s); err != nil {
			t.Fatalf("zktest: server %d: %v", s.id-1, err)
		}
	}
	if err := e.cluster.startAll(); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	e.WaitServing(t)
}

// Received returns how many requests the only server has received, this one included.
func (e *Ensemble) Received() (n int) {
	_, after, _ := strings.Cut(e.cluster.servers[0].ask("srvr"), "Received: ")
	_, _ = fmt.Sscan(after, &n)
	return n
}

// Version returns the release of ZooKeeper that a server runs, as it says itself.
func (e *Ensemble) Version(t testing.TB) string {
	t.Helper()
	for _, s := range e.cluster.reachable() {
		if m := release.FindStringSubmatch(s.ask("srvr")); m != nil {
			return m[1]
		}
	}
	t.Fatal("zktest: no server says its version")
	return ""
}

var release = regexp.MustCompile(`^Zookeeper version: ([0-9.]+)`)
