package chaos

import (
	"bufio"
	"cmp"
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

	"github.com/flaked/flaked/internal/faultdisk"
	"github.com/flaked/flaked/internal/faultnet"
	"github.com/flaked/flaked/internal/ownclock"
)

// machine is a node's: a clock, a network, a disk, and the process on it, which
// a supervisor starts again when it ends by itself.
type machine struct {
	c      *campaign
	id     int
	listen string
	dir    string // the state directory
	disk   *faultdisk.Disk
	links  []*faultnet.Link
	clock  ownclock.Clock
	base   time.Duration // the clock's error when nothing is done to it
	flags  *flags
	log    *os.File

	mu      sync.Mutex // guards what follows
	process *exec.Cmd
	ended   chan struct{}  // closed when process has
	wanted  bool           // it is to run
	sent    syscall.Signal // what is to end the process; 0: nothing is
	clocks  []clockAt

	probe     net.Conn // the lane's own connection
	probeIn   *bufio.Reader
	supervise sync.WaitGroup
}

// clockAt is a moment at which the machine's clock, or who looks at it, changed.
type clockAt struct {
	at     int64
	offset time.Duration
	exact  bool // the issuing clock shows it: a process began with it, or has caught up
}

func (m *machine) name() string { return nodeName(m.id) }

// step sets the clock's error.
func (m *machine) set(offset time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: offset})
	m.clock.Set(offset)
}

// caughtUp says that the node's issuing clock shows what the machine's does.
func (m *machine) caughtUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: m.clock.Offset(), exact: true})
}

func (m *machine) step(by time.Duration) { m.set(m.clock.Offset() + by) }

// args are the node's, short in all times so that much happens.
func (m *machine) args(listen string) []string {
	var zk []string
	for _, l := range m.links {
		zk = append(zk, l.Addr())
	}
	return append([]string{
		"serve", "--zk", strings.Join(zk, ","), "--state-dir", m.dir, "--listen", listen, "--name", fmt.Sprint("n", m.id),
		"--settle", settle.String(), "--lease", lease.String(), "--reserve", reserve.String(),
		"--start-timeout", "20s", "--log-format", "text", "--admin", "off",
	}, append(m.flags.forStart(), otherRules()...)...)
}

// start starts the process, and keeps it going until stop.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	m.launch()
}

// launch is with mu held.
func (m *machine) launch() {
	args := m.args(m.listen)
	cmd := exec.Command(m.c.binary, args...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
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
		_ = cmd.Wait() // its code is looked at in the end
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

// stop ends the process by a signal, and returns when it is gone.
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

// signal is for a process that goes on.
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

// lastLog is the process's last words.
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

// ask asks on the lane's own connection, which stays.
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

// serves tells whether the node would answer a GET.
func (m *machine) serves() bool {
	answer, err := m.ask("READY")
	return err == nil && answer == "OK"
}

// freshLease tells whether it serves, and has most of its lease left.
func (m *machine) freshLease() bool {
	return m.figure("lease_left_ms") > (*lease-*lease/4).Milliseconds() && m.serves()
}

// connected tells whether it has a fresh lease, ZooKeeper has answered a heartbeat of this
// process, and its clock has caught up with the machine's. The lease alone says too little:
// a process that starts from an old state has what is left of the old one.
func (m *machine) connected() bool {
	return m.freshLease() && m.figure("heartbeat_age_ms") >= 0 && m.figure("clock_unfollowed_leap_ms") == 0 && (m.flags.workers == 1 || m.figure("workers_ready") == int64(m.flags.workers))
}

// figure is one of STATS, -1 if there is none.
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

// until is the moment that a bound which STATS has the rest of lasts to, if
// nothing pushes it any more: now, if it is not known.
func (m *machine) until(figure string) int64 {
	now := m.c.now()
	return now + max(0, m.figure(figure))*int64(time.Millisecond)
}

var workerNumbers = regexp.MustCompile(`^worker=(\d+) (?:.* workers=([\d,]+)$)?`)

// workers are the numbers that the node holds.
func (m *machine) workers() (numbers []int, err error) {
	line, err := m.ask("WORKER")
	if err != nil {
		return nil, err
	}
	found := workerNumbers.FindStringSubmatch(line)
	if found == nil {
		return nil, errors.New(line)
	}
	for number := range strings.SplitSeq(cmp.Or(found[2], found[1]), ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// within polls until ok.
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

// pass lets time go by. That is what a fault takes; nothing is waited for.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
