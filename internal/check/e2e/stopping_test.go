package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node stops although ZooKeeper does not answer. A second signal ends it at once.
func TestTerminatedWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := harness.NewSite(t, zk.Addr())
	n := s.Started().Ready()
	id := n.Identity()
	load := n.Clients(1)
	load.Progress()
	zk.Freeze(0)
	load.Progress()
	load.Flawless()
	began := time.Now()
	n.Stop()
	t.Logf("stopped in %s with ZooKeeper frozen", time.Since(began))
	if r := n.Stored(); !r.Stopped {
		t.Error("the stop is not stored")
	}

	n.Start().Ready().Get(100)
	n.Proc.Signal(syscall.SIGTERM)
	n.Until("it says that it stops", func() bool {
		return strings.Contains(n.Proc.Log(),
			"another signal ends it at once")
	})
	// Two signals within a second count as one, because timeout(1) sends its signal both to
	// the process and to its group.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	began = time.Now()
	for n.Proc.Running() {
		n.Proc.Signal(syscall.SIGTERM)
		<-again.C
	}
	t.Logf("ended %s after the first signal, exit %d", time.Since(began), n.Proc.Exit())
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s to end at once", took)
	}
	n.Start().Ready().Get(100)

	zk.Thaw(0)
	n.Heartbeats(true)
	if now := n.Identity(); now.Worker != id.Worker || now.UUID != id.UUID {
		t.Errorf("%+v, was %+v", now, id)
	}
	n.Get(100)
}
