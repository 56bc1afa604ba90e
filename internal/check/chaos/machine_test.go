package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// machine is the machine of one node: a clock, links, a disk and the process. A process that
// ends by itself is started again after a second.
type machine struct {
	c      *campaign
	id     int
	listen string
	dir    string // the state directory
	disk   *faultdisk.Disk
	links  []*faultnet.Link
	clock  ownclock.Clock
	base   time.Duration // the clock's offset without a fault
	flags  *flags
	log    *os.File

	mu      sync.Mutex // guards the fields from process to clocks
	process *exec.Cmd
	ended   chan struct{}  // closed when process has ended
	wanted  bool           // start the process again when it ends
	sent    syscall.Signal // sent to end the process; 0: none
	clocks  []clockAt

	probe     net.Conn // only for the goroutine that runs faultTrack
	probeIn   *bufio.Reader
	supervise sync.WaitGroup
}

// clockAt records a change: of the machine's clock, of the process that reads it, or of what is
// known about the process's issuing clock.
type clockAt struct {
	at     int64
	offset time.Duration
	exact  bool // the issuing clock has this offset: a process began, or it caught up
}

func (m *machine) name() string { return nodeName(m.id) }

// set makes the machine's clock show true time plus offset.
func (m *machine) set(offset time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: offset})
	m.clock.Set(offset)
}

// caughtUp records that the node's issuing clock shows the same as the machine's clock.
func (m *machine) caughtUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: m.clock.Offset(), exact: true})
}

func (m *machine) step(by time.Duration) { m.set(m.clock.Offset() + by) }

// args returns the arguments of one start of the node. Its times are short, so that a run has
// many events.
func (m *machine) args(listen string) []string {
	var zk []string
	for _, l := range m.links {
		zk = append(zk, l.Addr())
	}
	return append([]string{
		"serve", "--zk", strings.Join(zk, ","), "--state-dir", m.dir, "--listen", listen, "--name", fmt.Sprint("n", m.id),
		"--confirm-time", confirm.String(), "--lease", lease.String(),
		"--log-format", "text", "--admin", "off",
	}, m.flags.forStart()...)
}

// start starts the process, and starts it again whenever it ends, until stop is called.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	m.launch()
}

// launch starts the process once. The caller holds mu.
func (m *machine) launch() {
	args := m.args(m.listen)
	cmd := exec.Command(m.c.binary, args...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"FLAKED_TEST_START_TIMEOUT=20s", "FLAKED_TEST_SESSION_TIMEOUT=" + m.flags.sessionTimeout()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fmt.Fprintf(m.log, "---- started at %s of the campaign: %s\n", moment(m.c.now()), strings.Join(args, " "))
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: m.clock.Offset(), exact: true})
	began := m.clock.Offset()
	if err := m.clock.Start(cmd); err != nil {
		m.c.violated(m.name(), "cannot be started: %v", err)
		return
	}
	ended := make(chan struct{})
	m.process, m.ended, m.sent = cmd, ended, 0
	m.supervise.Go(func() {
		_ = cmd.Wait() // endings checks the exit code
		m.mu.Lock()
		e := exit{
			node: m.id, at: m.c.now(), offset: began, sent: m.sent,
			status: cmd.ProcessState.Sys().(syscall.WaitStatus), said: m.lastLog(),
		}
		asked := !m.wanted || m.process != cmd
		m.mu.Unlock()
		m.c.exited(e)
		close(ended)
		if asked {
			return
		}
		again := time.NewTimer(time.Second)
		defer again.Stop()
		select {
		case <-again.C:
		case <-m.c.over:
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.wanted && m.process == cmd {
			m.launch()
		}
	})
}

// stop ends the process by a signal and waits for the end. After 30 s it reports a violation
// and kills the process.
func (m *machine) stop(sig syscall.Signal) {
	m.mu.Lock()
	m.wanted, m.sent = false, sig
	cmd, ended := m.process, m.ended
	m.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig) // it may have ended by itself
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		m.c.violated(m.name(), "has not ended 30 s after %s", sig)
		_ = cmd.Process.Kill()
		<-ended
	}
}

// signal sends a signal that does not end the process.
func (m *machine) signal(sig syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		_ = m.process.Process.Signal(sig)
	}
}

func (m *machine) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process.Process.Pid
}

// lastLog returns the last line of the log.
func (m *machine) lastLog() string {
	info, err := m.log.Stat()
	if err != nil {
		return err.Error()
	}
	b := make([]byte, min(info.Size(), 2000))
	n, _ := m.log.ReadAt(b, info.Size()-int64(len(b)))
	lines := strings.Split(strings.TrimSpace(string(b[:n])), "\n")
	return lines[len(lines)-1]
}

func (m *machine) eachLink(do func(*faultnet.Link)) {
	for _, l := range m.links {
		do(l)
	}
}

// ask sends a request on the machine's probe connection and returns the reply. It keeps the
// connection open for the next request.
func (m *machine) ask(request string) (string, error) {
	if m.probe == nil {
		conn, err := net.DialTimeout("tcp", m.listen, time.Second)
		if err != nil {
			return "", err
		}
		m.probe, m.probeIn = conn, bufio.NewReader(conn)
	}
	_ = m.probe.SetDeadline(time.Now().Add(2 * time.Second))
	_, err := io.WriteString(m.probe, request+"\n")
	var line string
	for err == nil {
		var l string
		if l, err = m.probeIn.ReadString('\n'); err == nil {
			line += l
			if request != "STATS" || l == "END\n" || strings.HasPrefix(l, "-") {
				return strings.TrimSpace(line), nil
			}
		}
	}
	m.probe.Close()
	m.probe = nil
	return "", err
}

// serves reports whether the node would answer a GET with an ID.
func (m *machine) serves() bool {
	answer, err := m.ask("READY")
	return err == nil && answer == "OK"
}

// freshLease reports whether the node serves and has more than three quarters of its lease left.
func (m *machine) freshLease() bool {
	return m.figure("lease_left_ms") > (*lease-*lease/4).Milliseconds() && m.serves()
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
	stats, err := m.ask("STATS")
	if err != nil {
		return -1
	}
	_, rest, found := strings.Cut(stats, name+" ")
	if !found {
		return -1
	}
	rest, _, _ = strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
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

var workerNumbers = regexp.MustCompile(`^worker=(\d+) `)

// workers returns the workers that the node holds.
func (m *machine) workers() (numbers []int, err error) {
	line, err := m.ask("WORKER")
	if err != nil {
		return nil, err
	}
	found := workerNumbers.FindStringSubmatch(line)
	if found == nil {
		return nil, errors.New(line)
	}
	n, err := strconv.Atoi(found[1])
	return []int{n}, err
}

// within polls ok every 5 ms and returns true once ok does. It returns false after the limit or
// when ctx ends.
func within(ctx context.Context, limit time.Duration, ok func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// pass blocks for d or until ctx ends. It is for the duration of faults and for pauses, not for
// waiting until something has happened.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
