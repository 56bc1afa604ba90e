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

	"github.com/flaked/flaked/internal/ownclock"
)

// server is one ZooKeeper process: its directory and ports, which it keeps for
// life, and the process, which comes and goes. Its cluster's mutex guards it.
type server struct {
	prog   program
	id     int // from 1, as ZooKeeper counts
	dir    string
	client *port
	quorum *port // nil when standalone, like election
	elect  *port
	clock  *ownclock.Clock // nil: the machine's

	cmd    *exec.Cmd // nil while no process runs
	frozen bool
}

func (s *server) addr() string    { return "127.0.0.1:" + strconv.Itoa(s.client.number) }
func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logFile() string { return filepath.Join(s.dir, "log") }
func (s *server) config() string  { return filepath.Join(s.dir, "zoo.cfg") }

// versionDir is where ZooKeeper keeps all that a wipe loses and a backup holds.
func (s *server) versionDir() string { return filepath.Join(s.dataDir(), "version-2") }

// configure writes zoo.cfg and myid.
func (s *server) configure(all []*server) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tickTime=500\ndataDir=%s\n", s.dataDir())
	fmt.Fprintf(&b, "clientPort=%d\nclientPortAddress=127.0.0.1\n", s.client.number)
	// The limit is per address, and a test of a hundred nodes has only one.
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

// start starts the process; it does not wait for it to serve.
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
		"-XX:-UsePerfData", // no file in /tmp for each kill -9
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dzookeeper.forceSync=no",    // see the package comment
		"-Dzookeeper.preAllocSize=64", // KiB; 64 MiB are slow to copy in Snapshot
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		// A line for each `srvr` of ours says nothing.
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

// kill ends the process as a power cut would, frozen or not, and waits for it.
func (s *server) kill() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.id-1)
	}
	s.cmd.Process.Kill()
	s.reap()
	return nil
}

// stop asks the process to end, and kills it if it takes longer than that
// should.
func (s *server) stop() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.id-1)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
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
	// The signal is on its way to each thread: nothing that happens after we
	// return may still be answered.
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

// mode is what the server says of itself: standalone, leader or follower, or
// nothing while it does not serve. It asks `srvr`; `ruok` is answered long
// before that, and means nothing.
func (s *server) mode() string { return parseMode(s.ask("srvr")) }

// answersItself: what answers on our port is this server, and not another that
// took the port first while ours is about to fail.
func (s *server) answersItself() bool {
	return strings.Contains(s.ask("conf"), "dataDir="+s.dataDir()+"/")
}

// ask returns the answer to a four-letter word, or nothing.
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

// tail is the end of the server's log, for a test that failed.
func (s *server) tail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// poll asks until ok, or until the time is over. A ticker, and never a bare
// sleep: a test waits for a fact, as long as that takes and no longer.
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
