//go:build unix

package zktest

import (
	"bytes"
	"errors"
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
)

// program holds the path of the Java binary and ZooKeeper's classpath.
type program struct {
	Java, Classpath string
}

// addr returns the address for clients, host:port.
func (s *server) addr() string    { return "127.0.0.1:" + strconv.Itoa(s.client) }
func (s *server) config() string  { return filepath.Join(s.dir, "zoo.cfg") }
func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

// securePort stands in settings for the port of a server that takes TLS.
const securePort = "SECURE_PORT"

// configure writes zoo.cfg and myid of a server in the ensemble all. settings are further lines of zoo.cfg.
func (s *server) configure(all []*server, settings []string) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "# written by internal/testkit/zktest of flaked")
	fmt.Fprintln(&b, "tickTime=500") // allows sessions of 1 s
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n", s.dataDir(), s.client)
	fmt.Fprintln(&b, "maxClientCnxns=0") // no limit: all clients have one address
	fmt.Fprintln(&b, "admin.enableServer=false\n4lw.commands.whitelist=*")
	if len(all) > 1 {
		fmt.Fprintf(&b, "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n")
		for _, o := range all {
			fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", o.id, o.quorum, o.election)
		}
		if err := os.WriteFile(filepath.Join(s.dataDir(), "myid"), fmt.Appendln(nil, s.id), 0o600); err != nil {
			return err
		}
	}
	for _, line := range settings {
		fmt.Fprintln(&b, strings.Replace(line, securePort, strconv.Itoa(s.secure), 1))
	}
	return os.WriteFile(s.config(), b.Bytes(), 0o600)
}

// tail returns the last 15 lines of the log, without stack frames, under a heading.
func (s *server) tail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error() + "\n"
	}
	var lines []string
	for line := range strings.Lines(string(log)) {
		if !strings.HasPrefix(line, "\tat ") {
			lines = append(lines, line)
		}
	}
	return fmt.Sprintf("--- the end of %s\n%s", s.logFile(), strings.Join(lines[max(0, len(lines)-15):], ""))
}

// server is one ZooKeeper server. Its directory and ports never change. Its
// process can be ended and started again. The cluster's mutex guards cmd and frozen.
type server struct {
	prog program
	id   int    // from 1, as ZooKeeper counts
	dir  string // absolute path of the directory of zoo.cfg, log and data

	// Ports on 127.0.0.1. A standalone server uses only client, and only a server with the setting takes TLS.
	client, secure, quorum, election int

	cmd    *exec.Cmd // nil while no process runs
	frozen bool
}

// versionDir returns the directory of ZooKeeper's snapshots and transaction logs.
// Wipe deletes it, Snapshot and Restore copy it.
func (s *server) versionDir() string { return filepath.Join(s.dataDir(), "version-2") }

// start starts the process. It does not wait until the server serves. The process appends its output to logFile.
func (s *server) start() error {
	if s.cmd != nil {
		return fmt.Errorf("server %d runs already", s.id-1)
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(s.prog.Java,
		"-Dzookeeper.forceSync=no",    // see the package comment
		"-Dzookeeper.preAllocSize=64", // KiB; 64 MiB are slow to copy in Snapshot
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", // else kill -9 leaves a /tmp file
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
		// At level info ZooKeeper logs a line for each `srvr` that mode sends.
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
		"-cp", s.prog.Classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config())
	cmd.Dir, cmd.SysProcAttr = s.dir, DieWithUs()
	cmd.Stdout, cmd.Stderr = log, log // files, so that os/exec starts no goroutines
	if err := cmd.Start(); err != nil {
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
	if !Poll(10*time.Second, func() bool { return exited(s.cmd.Process.Pid) }) {
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
	if !Poll(10*time.Second, func() bool { return Suspended(s.cmd.Process.Pid) }) {
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

// Timeout bounds every wait for servers. Half a second is usual, but a loaded CI machine
// with two cores takes far longer.
const Timeout = 60 * time.Second

// await blocks until the servers serve as one ensemble. It fails after Timeout, or as soon as
// ended returns servers whose processes have ended. The error holds the ends of the logs.
func await(servers []*server, ended func() []*server) error {
	var problem string
	ok := Poll(Timeout, func() bool {
		if dead := ended(); len(dead) > 0 {
			problem = fmt.Sprintf("the server in %s ended by itself", dead[0].dir)
			return true
		}
		problem = notServing(servers)
		return problem == ""
	})
	if !ok {
		problem = fmt.Sprintf("not serving after %v (%s)", Timeout, problem)
	}
	if problem == "" {
		return nil
	}
	for _, s := range servers {
		problem += "\n" + strings.TrimSuffix(s.tail(), "\n")
	}
	return errors.New(problem)
}

// notServing returns the servers' modes if they do not serve as one ensemble, else "". It
// requires exactly one leader: for a moment after a leader's death its followers still report
// that they follow. It also requires that the answers are those of these servers: another
// server may have taken a port first, and ours is then about to fail.
func notServing(servers []*server) string {
	var modes []string
	leaders, followers := 0, 0
	for _, s := range servers {
		mode := s.mode()
		switch {
		case mode != "" && !strings.Contains(s.ask("conf"), "dataDir="+s.dataDir()+"/"):
			mode = "another server"
		case mode == "standalone" || mode == "leader":
			leaders++
		case mode == "follower":
			followers++
		}
		modes = append(modes, fmt.Sprintf("%s: %q", s.addr(), mode))
	}
	if leaders == 1 && leaders+followers == len(servers) {
		return ""
	}
	return strings.Join(modes, ", ")
}

// mode returns "standalone", "leader" or "follower", or "" while the server does not
// serve. It asks `srvr`, because a server answers `ruok` long before it serves.
func (s *server) mode() string {
	for line := range strings.Lines(s.ask("srvr")) {
		if mode, ok := strings.CutPrefix(strings.TrimSpace(line), "Mode: "); ok {
			return mode
		}
	}
	return ""
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

// Poll calls ok every 20 ms and reports whether it returned true within limit.
func Poll(limit time.Duration, ok func() bool) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
