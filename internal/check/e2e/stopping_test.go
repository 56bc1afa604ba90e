package e2e

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// A node is killed several times under load. All acknowledged IDs are unique, and each restart
// issues IDs above those of the run before.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.build = forLoad()
	n := s.started().ready()
	id := n.identity()
	for range 4 {
		load := n.clients(3)
		load.progress()
		n.kill()
		load.end()
		n.start().ready()
	}
	n.get(100)
	if now := n.identity(); now.worker != id.worker || now.uuid != id.uuid {
		t.Errorf("%+v, was %+v", now, id)
	}
}

// pipeline sends requests without waiting for replies, like a busy Redis client. It fails the
// test unless it receives complete lines with increasing IDs, and then the end of the
// connection.
func (n *node) pipeline(wg *sync.WaitGroup) {
	t := n.site.t
	c, err := n.dial()
	if err != nil {
		t.Error(err)
		return
	}
	wg.Go(func() {
		request := strings.Repeat("GET\n", 20)
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for range pace.C {
			if _, err := io.WriteString(c.conn, request); err != nil {
				return // the reader checks how the connection ended
			}
		}
	})
	wg.Go(func() {
		defer c.close()
		in := bufio.NewReader(c.conn)
		for {
			asked := time.Duration(0) // unknown: no order check against earlier IDs
			line, err := in.ReadString('\n')
			if err == io.EOF && line == "" {
				return
			}
			if err != nil {
				t.Errorf("%s: the connection ended with %q and %v (thrown away: %v)", n.name, line, err, isReset(err))
				return
			}
			id, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
			if err != nil {
				t.Errorf("%s: answered %q", n.name, line)
				return
			}
			n.site.ids.record(asked, n.site.ids.now(), worker.ID(id))
			if worker.ID(id) <= c.last {
				t.Errorf("%s: %d after %d on one connection", n.name, id, c.last)
			}
			c.last = worker.ID(id)
		}
	})
}

// A node is stopped by SIGTERM under load. Each request is answered, or its connection ends
// between two lines. The process ends soon, with exit code 0.
func TestTerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.build = forLoad()
	n := s.started().ready()
	for range 3 {
		var streams sync.WaitGroup
		for range 3 {
			n.pipeline(&streams)
		}
		load := n.clients(2)
		idle, err := n.dial()
		if err != nil {
			t.Fatal(err)
		}
		load.progress()
		before := s.ids.len()
		eventually(t, "the streams have been answered", func() bool { return s.ids.len() > before+100 })

		began := time.Now()
		n.stop()
		took := time.Since(began)
		streams.Wait()
		for _, failure := range load.end().failed {
			// A connection may end between two requests, and a later one may be
			// refused by the kernel or with -NOTREADY.
			if strings.Contains(failure, errPartial.Error()) || strings.HasPrefix(failure, "-") && !strings.HasPrefix(failure, "-NOTREADY ") {
				t.Errorf("a client saw %s", failure)
			}
		}
		if _, err := idle.line(); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection ended with %v", err)
		}
		idle.close()
		t.Logf("stopped in %s", took)
		if took > 8*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		r := n.stored().Record
		if !r.Stopped {
			t.Error("the stop is not stored")
		}
		n.start()
		n.ready().firstAfter(r.MMs)
	}
}

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
	if r := n.stored().Record; !r.Stopped {
		t.Error("the stop is not stored")
	}

	n.start().ready().get(100)
	n.proc.signal(syscall.SIGTERM)
	n.until("it says that it stops", func() bool { return strings.Contains(n.proc.log(), "another signal ends it at once") })
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

// timeout(1) and some supervisors signal the process and then its group. Several signals at
// once are one clean stop.
func TestTerminatedTwiceAtOnceIsOneStop(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.started().ready()
	n.get(10)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range 5 {
		n.proc.signal(syscall.SIGTERM)
		<-again.C
	}
	n.stop()
	if r := n.stored().Record; !r.Stopped {
		t.Error("the stop is not stored")
	}
}
