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

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// descriptors sets the limit of a running process so that it can open more further descriptors,
// where more is a count. RLIMIT_NOFILE is a limit on descriptor numbers, so unused numbers
// below it count too.
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

// cpu returns the processor time that the process has used.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var ticks time.Duration
	for _, field := range strings.Fields(rest)[11:13] { // user and system time
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100 // USER_HZ
}

// stat returns a figure of STATS. It uses the client's connection, because a new one may not be
// accepted.
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

// The node has no descriptor left for another connection. Existing connections are served. The
// node retries accepting without busy looping, and accepts again when descriptors are free. It
// also reconnects to ZooKeeper then, if that connection was lost meanwhile.
func TestAcceptResumesWhenDescriptorsAreFree(t *testing.T) {
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
	served := open() // includes the watcher's connection
	const complaint = "failed to accept a connection, retrying"

	const left = 3
	n.proc.descriptors(t, left)
	crowd := make([]*client, 20)
	for i := range crowd {
		// The kernel completes the connection and buffers the data until the node accepts.
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
	// Cut ends the connection to ZooKeeper, unless it has ended on a slow machine. A queued
	// connection takes its descriptor.
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

	// Each served connection closes, so that the next one in the queue is accepted.
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
