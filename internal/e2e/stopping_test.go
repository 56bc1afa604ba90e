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

	"github.com/flaked/flaked/internal/zktest"
	"github.com/flaked/flaked/worker"
)

// kill -9 under load, again and again: what was acknowledged stays unique, and
// no restart is below what the run before it handed out.
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

// pipeline asks without end and without waiting, as a busy client of Redis
// does, and checks what comes back: whole lines that are IDs, then an end.
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
				return // it has ended; the reader judges how
			}
		}
	})
	wg.Go(func() {
		defer c.close()
		in := bufio.NewReader(c.conn)
		for {
			asked := time.Duration(0) // before all: of its order only this connection knows
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

// SIGTERM under load: what was asked is answered or the connection ends, in
// order and between two lines; the process ends soon and says that all is well.
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
			// Cut off between two questions, or none there any more to ask.
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

// ZooKeeper does not answer when a node is told to stop: it stops all the
// same, and the second signal does not wait.
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
	// Two in the same second may be one request to stop: timeout(1) sends it to
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

// timeout(1), and supervisors that signal a whole group after the process: two
// signals, one request. It is a clean stop.
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
