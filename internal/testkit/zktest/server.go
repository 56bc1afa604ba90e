package zktest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// server is one ZooKeeper server. Its directory, ports and clock never change. Its
// process can be ended and started again. The cluster's mutex guards cmd and frozen.
type server struct {
	prog   program
	id     int // from 1, as ZooKeeper counts
	dir    string
	client *port
	quorum *port // nil when standalone, like elect
	elect  *port
	clock  *ownclock.Clock // nil: the machine's

	cmd    *exec.Cmd // nil while no process runs
	frozen bool
}

func (s *server) addr() string    { return "127.0.0.1:" + strconv.Itoa(s.client.number) }
func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logFile() string { return filepath.Join(s.dir, "log") }
func (s *server) config() string  { return filepath.Join(s.dir, "zoo.cfg") }

// versionDir returns the directory of ZooKeeper's snapshots and transaction logs.
// Wipe deletes it, Snapshot and Restore copy it.
func (s *server) versionDir() string { return filepath.Join(s.dataDir(), "version-2") }

// configure writes zoo.cfg and myid.
func (s *server) configure(all []*server) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tickTime=500\ndataDir=%s\n", s.dataDir())
	fmt.Fprintf(&b, "clientPort=%d\nclientPortAddress=127.0.0.1\n", s.client.number)
	// No limit: all nodes of a test connect from one address.
	fmt.Fprintf(&b, "maxClientCnxns=0\n")
	fmt.Fprintf(&b, "admin.enableServer=false\n4lw.commands.whitelist=*\n")
	if len(all) > 1 {
		fmt.Fprintf(&b, "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n")
		for _, o := range all {
			fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", o.id, o.quorum.number, o.elect.number)
		}
		if err := os.WriteFile(filepath.Join(s.dataDir(), "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(s.config(), b.Bytes(), 0o600)
}

// start starts the process. It does not wait until the server serves.
func (s *server) start() error {
	if s.cmd != nil {
		return fmt.Errorf("server %d runs already", s.id-1)
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(s.prog.java,
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", // else kill -9 leaves a /tmp file
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dzookeeper.forceSync=no",    // see the package comment
		"-Dzookeeper.preAllocSize=64", // KiB; 64 MiB are slow to copy in Snapshot
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		// At level info ZooKeeper logs a line for each `srvr` that mode sends.
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
		"-cp", s.prog.classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config())
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log // files, so that os/exec starts no goroutines
	cmd.SysProcAttr = dieWithUs()
	start := cmd.Start
	if s.clock != nil {
		start = func() error { return s.clock.Start(cmd) }
	}
	if err := start(); err != nil {
		return err
	}
	s.cmd = cmd
	return nil
}

// kill ends the process by SIGKILL, frozen or not, and waits until it has ended.
func (s *server) kill() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.id-1)
	}
	s.cmd.Process.Kill()
	s.reap()
	return nil
}

// stop ends the process by SIGTERM, and by SIGKILL if that takes longer than 10 s.
func (s *server) stop() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.id-1)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	// A frozen process handles SIGTERM only after SIGCONT.
	s.cmd.Process.Signal(syscall.SIGCONT)
	if !poll(10*time.Second, func() bool { return exited(s.cmd.Process.Pid) }) {
		s.cmd.Process.Kill()
	}
	s.reap()
	return nil
}

func (s *server) reap() {
	s.cmd.Wait() // the status is that of the signal we sent
	s.cmd = nil
	s.frozen = false
}

func (s *server) freeze() error {
	if s.cmd == nil || s.frozen {
		return fmt.Errorf("server %d does not run", s.id-1)
	}
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.frozen = true
	// The threads stop a little later than the signal was sent. Once freeze has
	// returned, no thread may answer a request.
	if !poll(10*time.Second, func() bool { return suspended(s.cmd.Process.Pid) }) {
		return fmt.Errorf("server %d does not stop on SIGSTOP", s.id-1)
	}
	return nil
}

func (s *server) thaw() error {
	if s.cmd == nil || !s.frozen {
		return fmt.Errorf("server %d is not frozen", s.id-1)
	}
	s.frozen = false
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

// mode returns "standalone", "leader" or "follower", or "" while the server does not
// serve. It asks `srvr`, because a server answers `ruok` long before it serves.
func (s *server) mode() string { return parseMode(s.ask("srvr")) }

// answersItself reports whether this server answers on its port. Another server may
// have taken the port first, and this one is then about to fail.
func (s *server) answersItself() bool {
	return strings.Contains(s.ask("conf"), "dataDir="+s.dataDir()+"/")
}

// ask returns the answer to a four-letter word, or "" if the server does not answer
// within a second.
func (s *server) ask(word string) string {
	conn, err := net.DialTimeout("tcp", s.addr(), time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return ""
	}
	reply, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if err != nil {
		return ""
	}
	return string(reply)
}

func parseMode(srvr string) string {
	for line := range strings.Lines(srvr) {
		if mode, ok := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); ok {
			return mode
		}
	}
	return ""
}

// tail returns the last 15 lines of the server's log, for a test that failed.
func (s *server) tail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// poll calls ok every 20 ms and reports whether it returned true within limit. Tests
// poll for a fact and do not sleep, so that they wait no longer than necessary.
func poll(limit time.Duration, ok func() bool) bool {
	if ok() {
		return true
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(limit)
	for range ticker.C {
		if ok() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
	panic("unreachable: the ticker's channel is never closed")
}
