//go:build unix

package zktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// server is one ZooKeeper server. Its directory and ports never change. Its
// process can be ended and started again. The cluster's mutex guards cmd and frozen.
type server struct {
	prog program
	id   int    // from 1, as ZooKeeper counts
	dir  string // absolute path of the directory of zoo.cfg, log and data

	// Ports on 127.0.0.1. A standalone server uses only client.
	client, quorum, election, admin int

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
	cmd := exec.Command(s.prog.Java, append(s.prog.Properties,
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
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config())...)
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
