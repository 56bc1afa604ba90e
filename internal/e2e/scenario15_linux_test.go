package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/zktest"
)

// descriptors lets a running process have so many more than it has. The limit is
// on their numbers, and there are gaps.
func (p *process) descriptors(t *testing.T, more uint64) {
	t.Helper()
	pid := p.cmd.Process.Pid
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		t.Fatal(err)
	}
	for limit.Cur = 0; more > 0; limit.Cur++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, limit.Cur)); errors.Is(err, os.ErrNotExist) {
			more--
		}
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// cpu is the processor time that a process has used.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var ticks time.Duration
	for _, field := range strings.Fields(rest)[11:13] { // of user and system
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100 // USER_HZ
}

// stat is one figure of STATS, asked over a connection that there is already.
func (c *client) stat(name string) (value string) {
	line, err := c.ask("STATS")
	for ; err == nil && line != "END"; line, err = c.line() {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			value = v
		}
	}
	if err != nil {
		return err.Error()
	}
	return value
}

// No descriptor is left for another connection: those that there are go on as
// ever, accepting waits and does not spin, and goes on when there are some
// again. ZooKeeper's connection, lost meanwhile, is no exception.
func TestScenario15OutOfDescriptors(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	n := s.node()
	network := n.network()
	n.start().ready()
	before := n.identity()
	load := n.clients(2)
	load.progress()
	watcher, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.close()
	open := func() int {
		conns, err := strconv.Atoi(watcher.stat("conns_open"))
		if err != nil {
			t.Fatal(err)
		}
		return conns
	}
	served := open() // the watcher's is accepted by now
	const complaint = "cannot accept connections, trying on"

	const left = 3
	n.proc.descriptors(t, left)
	crowd := make([]*client, 20)
	for i := range crowd {
		// The kernel accepts for the node, and keeps what is sent.
		if crowd[i], err = n.dial(); err != nil {
			t.Fatal(err)
		}
		defer crowd[i].close()
		if _, err := io.WriteString(crowd[i].conn, "PING here\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, complaint, func() bool { return strings.Contains(n.proc.log(), complaint) })
	load.progress()
	// ZooKeeper's connection ends, if it has not on a slow machine, and the queue takes what it leaves.
	network.Cut()
	eventually(t, "one more of the queue is served", func() bool { return open() > served+left })
	network.Heal()
	eventually(t, "ZooKeeper is out of reach", func() bool { return watcher.stat("zookeeper_ok") == "false" })
	load.progress()

	began, used := time.Now(), n.proc.cpu(t)
	<-time.After(time.Second)
	used, took := n.proc.cpu(t)-used, time.Since(began)
	t.Logf("waiting for descriptors costs %s of %s", used, took)
	if used > took/2 {
		t.Errorf("waiting for descriptors costs %s of %s: it spins", used, took)
	}
	if times := strings.Count(n.proc.log(), complaint); times > 20 {
		t.Errorf("it has complained %d times", times)
	}

	// Those who are served leave, and the others' turn comes.
	for _, c := range crowd {
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		if answer, err := c.line(); answer != "here" {
			t.Errorf("in the queue: %q %v", answer, err)
		}
		c.close()
	}
	eventually(t, "ZooKeeper is reached again", func() bool { return watcher.stat("zookeeper_ok") == "true" })
	load.progress()
	load.flawless()
	n.get(100)
	if now := n.identity(); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}
	if !strings.Contains(n.proc.log(), "accepting connections again") {
		t.Error("it has not said that it accepts again")
	}
}
