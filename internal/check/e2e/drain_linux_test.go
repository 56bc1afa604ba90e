package e2e

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// drain runs `flaked drain` for the node in the background.
func (n *node) drain(flags ...string) <-chan result {
	done := make(chan result, 1)
	go func() {
		done <- execute(n.site.t, shipped.binary(n.site.t),
			append([]string{"drain", "--state-dir", n.dir}, flags...)...)
	}()
	return done
}

// opened returns a client whose connection has been used.
func (n *node) opened() *client {
	n.site.t.Helper()
	c, err := n.dial()
	if err == nil {
		_, err = c.get(1)
	}
	if err != nil {
		n.site.t.Fatal(err)
	}
	n.site.t.Cleanup(c.close)
	return c
}

// A draining node refuses new connections and says that it is not ready, but answers the open
// ones until they are closed. It then stops cleanly and keeps its worker.
func TestDrainAnswersOpenConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "5m")
	n := s.started().ready()
	id := n.identity()
	open := n.opened()
	drained := n.drain()
	n.until("new connections are refused", func() bool {
		_, err := n.ask("PING")
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if _, err := open.ask("READY"); err == nil || err.Error() != "-NOTREADY draining: the node stops soon" {
		t.Errorf("READY is answered with %v", err)
	}
	if _, err := open.get(1000); err != nil {
		t.Errorf("GET on an open connection: %v", err)
	}
	if !n.proc.running() {
		t.Fatal("the node has ended while a connection was open")
	}
	open.close()
	r := <-drained
	if r.code != 0 || !strings.Contains(r.stdout, "worker 0 is kept for its next start until ") {
		t.Errorf("drain: %+v", r)
	}
	if code := n.proc.exit(); code != 0 {
		t.Errorf("the node has ended with %d", code)
	}
	if now := n.start().ready().identity(); now.uuid != id.uuid || now.worker != id.worker {
		t.Errorf("%+v, was %+v", now, id)
	}
}

// Connections that stay open are closed after --drain-time, between two replies. With --release the
// worker is given back: the next start registers a new node at once. Not so while registration is frozen: nobody could
// acquire the worker, and a new node on another machine could not start.
func TestDrainEndsInTimeAndReleasesTheWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "200ms")
	n := s.started().ready()
	id := n.identity()
	s.command("cluster", "freeze").wants(t, 0, "froze registration")
	n.until("it knows of the freeze", func() bool {
		doc, err := n.ask("STATUS")
		return err == nil && !strings.Contains(doc, `"frozen_until_ms":null`)
	})
	if r := <-n.drain("--release"); r.code != 0 || !strings.Contains(r.stdout, "worker 0 is kept for its next start") {
		t.Errorf("drain in a freeze: %+v", r)
	}
	n.proc.exit()
	if now := n.start().ready().identity(); now.uuid != id.uuid || now.worker != id.worker {
		t.Errorf("%+v after a drain in a freeze, was %+v", now, id)
	}
	s.command("cluster", "thaw", "--confirm", "no lost holder of cluster default is left").wants(t, 0, "")
	n.until("it knows of the thaw", func() bool {
		doc, err := n.ask("STATUS")
		return err == nil && strings.Contains(doc, `"frozen_until_ms":null`)
	})

	idle := n.opened()
	load := n.clients(2)
	load.progress()
	r := <-n.drain("--release")
	if r.code != 0 || !strings.Contains(r.stdout, "it holds no worker any more") {
		t.Errorf("drain: %+v", r)
	}
	load.end()
	for _, m := range load.misses {
		if m.why == errPartial.Error() {
			t.Errorf("a client saw %d lines cut short", m.count)
		}
	}
	if _, err := idle.line(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection ended with %v", err)
	}
	// drain returns when the state directory is unlocked, which is shortly before the process ends.
	if code := n.proc.exit(); code != 0 {
		t.Errorf("the node has ended with %d", code)
	}
	if now := n.start().ready().identity(); now.uuid == id.uuid {
		t.Errorf("the node has kept its identity: %+v", now)
	}
}

// A drain that does not end in time can be cut short by SIGTERM.
func TestSIGTERMEndsADrain(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "1m")
	n := s.started().ready()
	n.opened()
	refused(t, <-n.drain("--timeout", "100ms"), 1, "still runs 100ms after it was asked to drain")
	n.stop()
}
