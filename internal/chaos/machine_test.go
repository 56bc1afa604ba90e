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
	"path/filepath"
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
	log    *os.File

	mu      sync.Mutex // guards what follows
	process *exec.Cmd
	ended   chan struct{} // closed when process has
	wanted  bool          // it is to run
	clocks  []clockAt

	probe     net.Conn // the lane's own connection
	probeIn   *bufio.Reader
	supervise sync.WaitGroup
}

// clockAt is a moment at which the machine's clock, or who looks at it, changed.
type clockAt struct {
	at     int64
	offset time.Duration
	start  bool // of a process
}

func (m *machine) name() string { return nodeName(m.id) }

// step sets the clock's error.
func (m *machine) set(offset time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: offset})
	m.clock.Set(offset)
}

func (m *machine) step(by time.Duration) { m.set(m.clock.Offset() + by) }

// args are the node's, short in all times so that much happens.
func (m *machine) args(listen string) []string {
	var zk []string
	for _, l := range m.links {
		zk = append(zk, l.Addr())
	}
	return []string{
		"serve", "--zk", strings.Join(zk, ","), "--state-dir", m.dir, "--listen", listen, "--name", fmt.Sprint("n", m.id),
		"--bootstrap", "--heartbeat", heartbeat.String(), "--settle", settle.String(), "--lease", lease.String(),
		"--reserve", reserve.String(), "--zk-session-timeout", "2s", "--start-timeout", "20s", "--log-format", "text",
		"--sequence-start", []string{"random", "zero", "carry-on"}[m.id%3],
	}
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
	cmd := exec.Command(m.c.binary, m.args(m.listen)...)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fmt.Fprintf(m.log, "---- started at %s of the campaign\n", moment(m.c.now()))
	m.clocks = append(m.clocks, clockAt{at: m.c.now(), offset: m.clock.Offset(), start: true})
	if err := m.clock.Start(cmd); err != nil {
		m.c.violated(m.name(), "cannot be started: %v", err)
		return
	}
	ended := make(chan struct{})
	m.process, m.ended = cmd, ended
	m.supervise.Go(func() {
		_ = cmd.Wait() // its code is looked at below
		close(ended)
		m.mu.Lock()
		asked := !m.wanted || m.process != cmd
		m.mu.Unlock()
		if asked {
			return
		}
		m.c.note(m.name(), "ended by itself, exit code %d: %s", cmd.ProcessState.ExitCode(), m.lastLog())
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
	m.wanted = false
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

func (m *machine) stateFile() string { return filepath.Join(m.dir, "flaked.state") }

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

var leaseLeft = regexp.MustCompile(`(?m)^lease_left_ms (\d+)$`)

// serves: it would answer a GET. connected: and it has a fresh lease.
func (m *machine) serves() bool {
	answer, err := m.ask("READY")
	return err == nil && answer == "OK"
}

func (m *machine) connected() bool {
	stats, err := m.ask("STATS")
	if err != nil || !m.serves() {
		return false
	}
	left := leaseLeft.FindStringSubmatch(stats)
	if left == nil {
		return false
	}
	ms, _ := strconv.ParseInt(left[1], 10, 64)
	return time.Duration(ms)*time.Millisecond > lease-lease/4
}

var workerNumber = regexp.MustCompile(`^worker=(\d+) `)

// worker is the number that the node holds.
func (m *machine) worker() (int, error) {
	line, err := m.ask("WORKER")
	if err != nil {
		return 0, err
	}
	number := workerNumber.FindStringSubmatch(line)
	if number == nil {
		return 0, errors.New(line)
	}
	return strconv.Atoi(number[1])
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
