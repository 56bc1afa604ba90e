package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exit is the end of a process.
type exit struct {
	node   int
	at     int64
	offset time.Duration  // of the machine's clock at the start of the process
	sent   syscall.Signal // the signal that was sent to end it; 0 for none
	status syscall.WaitStatus
	said   string // the last line of its log
}

func (e exit) String() string {
	how := fmt.Sprintf("ended with exit code %d", e.status.ExitStatus())
	if e.status.Signaled() {
		how = fmt.Sprintf("was ended by %q", e.status.Signal())
	}
	if e.sent != 0 {
		how += fmt.Sprintf(" after %q", e.sent)
	}
	return fmt.Sprintf("%s: %s", how, e.said)
}

// asTold reports whether the process ended because of the signal that it was sent, and in the
// way in which it must.
func (e exit) asTold() bool {
	switch e.sent {
	case syscall.SIGKILL:
		return e.status.Signaled() && e.status.Signal() == syscall.SIGKILL
	case syscall.SIGTERM:
		return e.status.Exited() && e.status.ExitStatus() == 0
	}
	return false
}

// exited records the end of a process.
func (l *timeline) exited(e exit) {
	if !e.asTold() {
		l.note(nodeName(e.node), "%s", e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exits = append(l.exits, e)
}

// documented reports whether the documentation has this end of a process. The last line of the
// log, the exit code and the faults at that time must match.
func (c *campaign) documented(e exit, tracks [][]showing) bool {
	if !e.status.Exited() {
		return false
	}
	startTimeout := int64(25 * time.Second)
	for _, why := range []struct {
		code int
		text string
		fits func() bool
	}{
		{1, "from ZooKeeper and peers (",
			func() bool { return e.offset.Abs() > agreed-time.Second || c.outvoted(tracks, e.node, e.at, e.at) }},
		{1, "behind what this worker may have issued. A start waits", func() bool { return e.offset < -agreed }},
		{1, "registration is frozen until", func() bool { return c.frozen(e.at, e.at) }},
		{1, "workers are held (", func() bool { return c.frozen(e.at, e.at) }},
		// the lost ones are kept for their holders
		// wiped, and started without --bootstrap
		{1, "cluster not found in this ZooKeeper", func() bool { return c.frozen(e.at, e.at) }},
		{1, "state directory: sync ", func() bool { return c.diskFailed(e.node, e.at) }},
		// the kernel reports a failed write once, perhaps later
		{3, "this node cannot start without it", func() bool { return c.away(e.at-startTimeout, e.at) }},
	} {
		if e.status.ExitStatus() == why.code && strings.Contains(e.said, why.text) {
			return why.fits()
		}
	}
	return false
}

// diskFailed reports whether the node's disk had a fault before at.
func (c *campaign) diskFailed(node int, at int64) bool {
	return c.anyFault(func(f *fault) bool {
		return f.node == node && f.injected <= at && strings.HasPrefix(f.kind.name, "disk")
	})
}

// endings records a finding for each process whose end is neither asTold nor documented, and for
// each panic in a log.
func (c *campaign) endings() error {
	tracks := c.tracks()
	for _, e := range c.exits {
		if !e.asTold() && !c.documented(e, tracks) {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: at %s it %s", nodeName(e.node), harness.Moment(e.at), e))
		}
	}
	for _, m := range c.machines {
		log, err := os.ReadFile(m.logFile)
		if err != nil {
			return err
		}
		for _, line := range harness.Crashed.FindAllString(string(log), 5) {
			c.wrong = append(c.wrong, m.Name+": its log has "+line)
		}
	}
	return nil
}

func TestEndings(t *testing.T) {
	const (
		wrongClock = "flaked: the clock differs by -2m from ZooKeeper and peers (2 of 2 voters say so, 5s is allowed)"
		behind     = "flaked: the clock is 1h behind what this worker may have issued. A start waits 10s at most."
		needed     = "flaked: ZooKeeper did not answer within 20s, and this node cannot start without it"
	)
	s := int64(time.Second)
	code := func(n int) syscall.WaitStatus { return syscall.WaitStatus(n << 8) }
	for _, row := range []struct {
		name string
		exit exit
		want bool
	}{
		{"killed", exit{sent: syscall.SIGKILL, status: syscall.WaitStatus(syscall.SIGKILL)}, true},
		{"killed by nobody", exit{status: syscall.WaitStatus(syscall.SIGKILL)}, false},
		{"stopped", exit{sent: syscall.SIGTERM, status: code(0)}, true},
		{"stopped, and failed", exit{sent: syscall.SIGTERM, status: code(1), said: "flaked: interrupted"}, false},
		{"stopped, and not by its own doing", exit{sent: syscall.SIGTERM, status: syscall.WaitStatus(syscall.SIGTERM)},
			false},
		{"done by itself", exit{status: code(0)}, false},
		{"panic", exit{status: code(2), said: "exit status 2"}, false},
		{"its disk fails, without a fault",
			exit{status: code(1), said: "flaked: --state-dir x: sync the state directory: sync x: input/output error"},
			false},
		{"its clock is wrong", exit{offset: -2 * time.Minute, status: code(1), said: wrongClock}, true},
		{"its clock is right", exit{status: code(1), said: wrongClock}, false},
		{"with another code", exit{offset: -2 * time.Minute, status: code(2), said: wrongClock}, false},
		{"its clock went back", exit{offset: -time.Hour, status: code(1), said: behind}, true},
		{"its clock did not go back", exit{status: code(1), said: behind}, false},
		{"ZooKeeper is away", exit{at: 30 * s, status: code(3), said: needed}, true},
		{"ZooKeeper is there", exit{at: 60 * s, status: code(3), said: needed}, false},
		{"no reason known", exit{at: 30 * s, status: code(1), said: "flaked: something else"}, false},
	} {
		c := &campaign{timeline: &timeline{}}
		c.faults = []*fault{{node: -1, injected: 10 * s, well: 20 * s, kind: &kind{}}}
		tracks := [][]showing{{{}}, {{}}, {{}}}
		if got := row.exit.asTold() || c.documented(row.exit, tracks); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	for line, want := range map[string]bool{"panic: runtime error: index": true, "goes on": false,
		"fatal error: all goroutines are asleep": true} {
		if harness.Crashed.MatchString(line) != want {
			t.Errorf("%q", line)
		}
	}
}
