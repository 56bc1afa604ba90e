package e2e

import (
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
	s := newSite(t, zk.Addr())
	n := s.started().ready()
	id := n.identity()
	load := n.clients(1)
	load.progress()
	zk.Freeze(0)
	load.progress()
	load.flawless()
	began := time.Now()
	n.stop()
	t.Logf("stopped in %s with ZooKeeper frozen", time.Since(began))
	if r := n.stored(); !r.Stopped {
		t.Error("the stop is not stored")
	}

	n.start().ready().get(100)
	n.proc.signal(syscall.SIGTERM)
	n.until("it says that it stops", func() bool {
		return strings.Contains(n.proc.log(),
			"another signal ends it at once")
	})
	// Two signals within a second count as one, because timeout(1) sends its signal both to
	// the process and to its group.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	began = time.Now()
	for n.proc.running() {
		n.proc.signal(syscall.SIGTERM)
		<-again.C
	}
	t.Logf("ended %s after the first signal, exit %d", time.Since(began), n.proc.exit())
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s to end at once", took)
	}
	n.start().ready().get(100)

	zk.Thaw(0)
	n.heartbeats(true)
	if now := n.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
	n.get(100)
}
