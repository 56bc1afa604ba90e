package zktest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensemble is one server or three, as a test sees them. Its methods may be
// called from several goroutines, those that take a testing.TB only from the
// test's own: they may end the test.
type Ensemble struct {
	tb      testing.TB
	cluster *cluster
	shared  bool // others use it too: hands off
}

// Addr is the connect string: host:port of all servers, joined by commas.
func (e *Ensemble) Addr() string { return strings.Join(e.Addrs(), ",") }

// Addrs are the servers' client addresses, host:port. They stay the same over
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

// Start starts server i again, on its old ports and data. It does not wait
// (there may be no quorum yet): WaitServing does.
func (e *Ensemble) Start(i int) { e.tb.Helper(); e.each(i, (*server).start) }

// Freeze stops server i by SIGSTOP: it keeps its connections, accepts new ones
// (the kernel does), and never answers. No thread of it runs after the return.
func (e *Ensemble) Freeze(i int) { e.tb.Helper(); e.each(i, (*server).freeze) }

// Thaw lets a frozen server i run on.
func (e *Ensemble) Thaw(i int) { e.tb.Helper(); e.each(i, (*server).thaw) }

// each does what to server i. An error marks the test as failed and lets it go
// on, because that may be done from any goroutine.
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

// WaitServing returns when all servers that run, and are not frozen, serve
// with a leader among them. Without a quorum of them it fails at once.
func (e *Ensemble) WaitServing(t testing.TB) {
	t.Helper()
	if err := e.cluster.await(); err != nil {
		t.Fatalf("zktest: %v", err)
	}
}

// Leader returns the number of the server that leads, once one does. A single
// server leads itself.
func (e *Ensemble) Leader(t testing.TB) int {
	t.Helper()
	leader := -1
	ok := poll(serveTimeout, func() bool {
		for _, s := range e.cluster.reachable() {
			if m := s.mode(); m == "leader" || m == "standalone" {
				leader = s.id - 1
				return true
			}
		}
		return false
	})
	if !ok {
		t.Fatalf("zktest: no leader after %v\n%s", serveTimeout, e.cluster.tail())
	}
	return leader
}

// Wipe kills all servers, deletes their data and starts them again: the disaster
// in which ZooKeeper forgets everything. It returns when they serve. A client
// that was connected before never comes back by itself (it has seen a later
// transaction than the servers know of), and chroots are gone.
func (e *Ensemble) Wipe(t testing.TB) {
	t.Helper()
	e.replaceData(t, func(s *server) error { return os.RemoveAll(s.versionDir()) })
}

// Snapshot copies all servers' data, as a backup would, and returns the copy's
// directory, which lasts as long as the test. The servers are killed for it and
// started again; it returns when they serve.
func (e *Ensemble) Snapshot(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	e.replaceData(t, func(s *server) error {
		return os.CopyFS(backup(dir, s), os.DirFS(s.versionDir()))
	})
	return dir
}

// Restore puts back what Snapshot copied, from this ensemble or another of the
// same size: the disaster in which ZooKeeper remembers an older time. All
// servers are killed for it and started again; it returns when they serve.
func (e *Ensemble) Restore(t testing.TB, snapshot string) {
	t.Helper()
	// Before anything is touched.
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

// replaceData kills all servers, does what to each one's data, starts all and
// waits until they serve.
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
