package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// drain runs `flaked drain` for the node in the background.
func drain(n *harness.Node, flags ...string) <-chan harness.Result {
	done := make(chan harness.Result, 1)
	go func() {
		done <- harness.Execute(n.Site.T, harness.Shipped.Binary(n.Site.T),
			append([]string{"drain", "--state-dir", n.Dir}, flags...)...)
	}()
	return done
}

// opened returns a client whose connection has been used.
func opened(n *harness.Node) *harness.Client {
	n.Site.T.Helper()
	c, err := n.Dial()
	if err == nil {
		_, err = c.Get(1)
	}
	if err != nil {
		n.Site.T.Fatal(err)
	}
	n.Site.T.Cleanup(c.Close)
	return c
}

// A draining node refuses new connections and says that it is not ready, but answers the open
// ones until they are closed. It then stops cleanly and keeps its worker.
func TestDrainAnswersOpenConnections(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "5m")
	n := s.Started().Ready()
	id := n.Identity()
	open := opened(n)
	drained := drain(n)
	n.Until("new connections are refused", func() bool {
		_, err := n.Ask("PING")
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if _, err := open.Ask("READY"); err == nil || err.Error() != "-NOTREADY draining: the node stops soon" {
		t.Errorf("READY is answered with %v", err)
	}
	if _, err := open.Get(1000); err != nil {
		t.Errorf("GET on an open connection: %v", err)
	}
	if !n.Proc.Running() {
		t.Fatal("the node has ended while a connection was open")
	}
	open.Close()
	r := <-drained
	if r.Code != 0 || !strings.Contains(r.Stdout, "worker 0 is kept for its next start until ") {
		t.Errorf("drain: %+v", r)
	}
	if code := n.Proc.Exit(); code != 0 {
		t.Errorf("the node has ended with %d", code)
	}
	if now := n.Start().Ready().Identity(); now.UUID != id.UUID || now.Worker != id.Worker {
		t.Errorf("%+v, was %+v", now, id)
	}
}

// Connections that stay open are closed after --drain-time, between two replies. With --release the
// worker is given back: the next start registers a new node at once. Not so while registration is frozen: nobody could
// acquire the worker, and a new node on another machine could not start.
func TestDrainEndsInTimeAndReleasesTheWorker(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "200ms")
	n := s.Started().Ready()
	id := n.Identity()
	s.Command("cluster", "freeze").Wants(t, 0, "froze registration")
	n.Until("it knows of the freeze", func() bool {
		doc, err := n.Ask("STATUS")
		return err == nil && !strings.Contains(doc, `"frozen_until_ms":null`)
	})
	if r := <-drain(n, "--release"); r.Code != 0 || !strings.Contains(r.Stdout, "worker 0 is kept for its next start") {
		t.Errorf("drain in a freeze: %+v", r)
	}
	n.Proc.Exit()
	if now := n.Start().Ready().Identity(); now.UUID != id.UUID || now.Worker != id.Worker {
		t.Errorf("%+v after a drain in a freeze, was %+v", now, id)
	}
	s.Command("cluster", "thaw", "--confirm", "no lost holder of cluster default is left").Wants(t, 0, "")
	n.Until("it knows of the thaw", func() bool {
		doc, err := n.Ask("STATUS")
		return err == nil && strings.Contains(doc, `"frozen_until_ms":null`)
	})

	idle := opened(n)
	load := n.Clients(2)
	load.Progress()
	r := <-drain(n, "--release")
	if r.Code != 0 || !strings.Contains(r.Stdout, "it holds no worker any more") {
		t.Errorf("drain: %+v", r)
	}
	load.End()
	for _, m := range load.Misses {
		if m.Why == harness.ErrPartial.Error() {
			t.Errorf("a client saw %d lines cut short", m.Count)
		}
	}
	if _, err := idle.Line(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection ended with %v", err)
	}
	// drain returns when the state directory is unlocked, which is shortly before the process ends.
	if code := n.Proc.Exit(); code != 0 {
		t.Errorf("the node has ended with %d", code)
	}
	if now := n.Start().Ready().Identity(); now.UUID == id.UUID {
		t.Errorf("the node has kept its identity: %+v", now)
	}
}

// A drain that does not end in time can be cut short by SIGTERM.
func TestSIGTERMEndsADrain(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "1m")
	n := s.Started().Ready()
	opened(n)
	refused(t, <-drain(n, "--timeout", "100ms"), 1, "still runs 100ms after it was asked to drain")
	n.Stop()
}
