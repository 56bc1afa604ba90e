package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// machine is a node of the campaign: a clock, links, a disk and the process. A process that ends by
// itself is started again after a second. A node's flags that differ between the machines, and between the
// starts of one machine, are drawn: safety must not depend on them.
type machine struct {
	*harness.Node
	c       *campaign
	clock   *ownclock.Clock
	logFile string
	release bool       // the node releases its worker when it stops cleanly
	rng     *rand.Rand // for the flags of each start

	used  []usage       // only for the goroutine that measures
	lease time.Duration // what is left of it at the end of the run

	mu     sync.Mutex    // guards the fields below and node.proc
	base   time.Duration // the clock's offset without a fault
	starts int
	wanted bool           // start the process again when it ends
	ended  chan struct{}  // closed when the end of the process has been recorded
	sent   syscall.Signal // sent to end the process; 0: none
	clocks []clockAt

	probe     *harness.Client // only for the goroutine that runs faultTrack
	supervise sync.WaitGroup
}

// clockAt records a change: of the machine's clock, of the process that reads it, or of what is
// known about the process's issuing clock.
type clockAt struct {
	at     int64
	offset time.Duration
	exact  bool // the issuing clock has this offset: a process began, or it caught up
}

// newMachine returns a machine whose node has not run. subnet is the beginning of its address.
func (c *campaign) newMachine(subnet string, base time.Duration) *machine {
	m := &machine{Node: c.site.Node(), c: c, base: base}
	m.rng = rand.New(rand.NewPCG(*chaosSeed, 200+uint64(m.ID)))
	m.release = m.rng.IntN(5) < 2
	m.Listen = fmt.Sprintf("%s%d:7609", subnet, m.ID+1)
	m.logFile = filepath.Join(c.dir, m.Name+".log")
	_, _ = os.Remove(m.logFile), os.Remove(m.traceFile()) // of an earlier run
	m.probe = &harness.Client{Node: m.Node, Timeout: clientTimeout}
	m.clock = new(ownclock.Clock)
	if os.Geteuid() == 0 {
		m.Disk = faultdisk.New(c.t)
		m.Dir = filepath.Join(m.Disk.Dir(), "state")
	}
	m.Network()
	m.right()
	c.t.Cleanup(func() {
		m.signal(syscall.SIGCONT)
		m.end(syscall.SIGKILL)
		m.supervise.Wait()
	})
	return m
}

// set makes the machine's clock show true time plus what to returns for its offset.
func (m *machine) set(to func(offset time.Duration) time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	offset := to(m.clock.Offset())
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: offset})
	m.clock.Set(offset)
}

// right sets the clock as it is without a fault.
func (m *machine) right() { m.set(func(time.Duration) time.Duration { return m.base }) }

func (m *machine) step(by time.Duration) {
	m.set(func(offset time.Duration) time.Duration { return offset + by })
}

// drift steps the clock by so little that it seems to run fast or slow.
func (m *machine) drift(by time.Duration) {
	m.set(func(offset time.Duration) time.Duration { m.base += by; return offset + by })
}

// caughtUp records that the node's issuing clock shows the same as the machine's clock.
func (m *machine) caughtUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: m.clock.Offset(), exact: true})
}

// admin returns the address of the node's metrics.
func (m *machine) admin() string { return strings.TrimSuffix(m.Listen, "7609") + "7610" }

// forStart draws the flags and the environment of one start. The times are short, so that a run has many events.
// With a confirming time of confirm, a node accepts a heartbeat interval of at most slowest. The servers grant
// sessions of at most 10 s.
func (m *machine) forStart() (flags, env []string) {
	flags = []string{
		"--confirm-time", confirm.String(), "--lease", chaosLease.String(), "--log-format", "text",
		"--heartbeat", []time.Duration{slowest / 4, slowest / 2, slowest}[m.rng.IntN(3)].String(),
	}
	flags = append(flags, m.c.secure...)
	if soaks() {
		flags = append(flags, "--admin", m.admin())
	}
	if m.rng.IntN(2) == 0 || m.ID == 0 && m.starts == 0 { // the run's first start creates the cluster
		flags = append(flags, "--bootstrap")
	}
	if m.release {
		flags = append(flags, "--release-on-exit")
	}
	m.starts++
	session := []string{"2s", "6s", "30s"}[m.rng.IntN(3)]
	if soaks() {
		session = "30s" // a machine that was busy for 2 s is no fault of the hours
	}
	return flags, []string{"FLAKED_TEST_START_TIMEOUT=20s", "FLAKED_TEST_SESSION_TIMEOUT=" + session,
		"FLAKED_TRACE=" + m.traceFile()}
}

// begin starts the process, and starts it again whenever it ends, until end is called.
func (m *machine) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	m.launch()
}

// launch starts the process once. mu is held.
func (m *machine) launch() {
	var env []string
	m.Flags, env = m.forStart()
	began := m.clock.Offset()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: began, exact: true})
	p, err := harness.Spawn(m.c.t, env, m.Name, m.logFile, m.clock, exec.Command(m.c.binary, m.Args()...))
	if err != nil {
		m.c.violated(m.Name, "cannot be started: %v", err)
		return
	}
	ended := make(chan struct{})
	m.Proc, m.ended, m.sent = p, ended, 0
	m.supervise.Go(func() {
		<-p.Done
		m.mu.Lock()
		status := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
		m.c.exited(exit{node: m.ID, at: m.c.now(), offset: began, sent: m.sent, status: status,
			said: harness.LastLines(p.Log(), 1)})
		asked := !m.wanted || m.Proc != p
		m.mu.Unlock()
		close(ended)
		if asked {
			return
		}
		harness.Pass(m.c.playing, time.Second)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.wanted && m.Proc == p && m.c.playing.Err() == nil {
			m.launch()
		}
	})
}

// end ends the process by a signal and waits for the end. After 30 s it reports a violation
// and kills the process.
func (m *machine) end(sig syscall.Signal) {
	m.mu.Lock()
	m.wanted, m.sent = false, sig
	p, ended := m.Proc, m.ended
	m.mu.Unlock()
	if p == nil {
		return
	}
	_ = p.Cmd.Process.Signal(sig) // it may have ended by itself
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		m.c.violated(m.Name, "has not ended 30 s after %s", sig)
		p.Kill()
		<-ended
	}
}

// restarted ends the process by a signal, makes a change unless that is nil, and starts it again.
func (m *machine) restarted(sig syscall.Signal, change func() error) error {
	m.end(sig)
	defer m.begin()
	if change == nil {
		return nil
	}
	return change()
}

// signal sends a signal that does not end the process.
func (m *machine) signal(sig syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Proc != nil {
		_ = m.Proc.Cmd.Process.Signal(sig)
	}
}

func (m *machine) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Proc.Cmd.Process.Pid
}

// clientTimeout is the time after which a client gives up a request and closes the connection.
const clientTimeout = 2 * time.Second

// load starts the three clients of a node. Two ask for one ID about a thousand times a second,
// and send a pipeline of fifty requests every hundredth time. The third asks for 800 IDs a
// hundred times a second, and every fiftieth time for 10,000, which is more than a tick has.
func (m *machine) load() *harness.Load {
	l := m.NewLoad()
	pipeline := strings.Repeat("GET\n", 50)
	single := func(c *harness.Client, round int) (int, error) {
		if round%100 == 0 {
			return c.Counted(pipeline, 50)
		}
		return c.Counted("GET\n", 1)
	}
	l.Add(pace(time.Millisecond), clientTimeout, single)
	l.Add(pace(1100*time.Microsecond), clientTimeout, single)
	l.Add(pace(10*time.Millisecond), clientTimeout, func(c *harness.Client, round int) (int, error) {
		if round%50 == 0 {
			return c.Counted("GET 10000\n", 10_000)
		}
		return c.Counted("GET 800\n", 800)
	})
	return l
}

// serves reports whether the node would answer a GET with an ID.
func (m *machine) serves() bool {
	answer, err := m.probe.Ask("READY")
	return err == nil && answer == "OK"
}

// freshLease reports whether the node serves and has more than three quarters of its lease left. A long lease is at
// first as short as that of others, and grows: then ZooKeeper must also have acknowledged one of the last heartbeats.
func (m *machine) freshLease() bool {
	lease := min(*chaosLease, limits.MinLease)
	if soaks() {
		if age := m.figure("heartbeat_age_ms"); age < 0 || age > (3*slowest).Milliseconds() {
			return false
		}
	}
	return m.figure("lease_left_ms") > (lease-lease/4).Milliseconds() && m.serves()
}

// connected reports whether the node has a fresh lease. It also
// requires that ZooKeeper has acknowledged a heartbeat of this process, and that the issuing
// clock has caught up with the machine's clock. A fresh lease does not suffice, because a
// process that starts from an old state still has the rest of the old lease.
func (m *machine) connected() bool {
	return m.freshLease() && m.figure("heartbeat_age_ms") >= 0 && m.figure("clock_unfollowed_leap_ms") == 0
}

// figure returns a figure of STATS, or -1 if STATS does not have it or fails.
func (m *machine) figure(name string) int64 {
	text, err := m.probe.Stat(name)
	n, bad := strconv.ParseInt(text, 10, 64)
	if err != nil || bad != nil {
		return -1
	}
	return n
}

// until returns the time at which a bound of the node ends if it is not extended any more.
// figure names the field of STATS with the rest of the bound in ms. If the field is missing,
// until returns now.
func (m *machine) until(figure string) int64 {
	now := m.c.now()
	return now + max(0, m.figure(figure))*int64(time.Millisecond)
}

// holds returns the worker that the node holds.
func (m *machine) holds() (int, error) {
	id, err := m.TryIdentity()
	if err == nil && id.Worker < 0 {
		err = errors.New("no worker")
	}
	return id.Worker, err
}

// leavesNothing returns findings if a state file or a journal is left after a stop with --release-on-exit. A
// node could use a released worker, or values that it has given back, again from such a file.
func (m *machine) leavesNothing() (wrong []string) {
	for _, file := range []string{m.StateFile(), m.Journal()} {
		if _, err := os.Stat(file); m.release && !os.IsNotExist(err) {
			wrong = append(wrong, fmt.Sprintf("%s: its worker is released, and %s is still there (%v)", m.Name, file, err))
		}
	}
	return wrong
}
