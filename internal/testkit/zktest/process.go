//go:build unix

package zktest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// server is one ZooKeeper server. Its directory and ports never change. Its
// process can be ended and started again. The cluster's mutex guards cmd and frozen.
type server struct {
	Server
	prog Program

	cmd    *exec.Cmd // nil while no process runs
	frozen bool
}

// versionDir returns the directory of ZooKeeper's snapshots and transaction logs.
// Wipe deletes it, Snapshot and Restore copy it.
func (s *server) versionDir() string { return filepath.Join(s.DataDir(), "version-2") }

// start starts the process. It does not wait until the server serves.
func (s *server) start() (err error) {
	if s.cmd != nil {
		return fmt.Errorf("server %d runs already", s.ID-1)
	}
	s.cmd, err = s.Launch(s.prog, func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = dieWithUs()
		return cmd.Start()
	},
		"-Dzookeeper.forceSync=no",    // see the package comment
		"-Dzookeeper.preAllocSize=64") // KiB; 64 MiB are slow to copy in Snapshot
	return err
}

// kill ends the process by SIGKILL, frozen or not, and waits until it has ended.
func (s *server) kill() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.ID-1)
	}
	s.cmd.Process.Kill()
	s.reap()
	return nil
}

// stop ends the process by SIGTERM, and by SIGKILL if that takes longer than 10 s.
func (s *server) stop() error {
	if s.cmd == nil {
		return fmt.Errorf("server %d does not run", s.ID-1)
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
		return fmt.Errorf("server %d does not run", s.ID-1)
	}
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.frozen = true
	// The threads stop a little later than the signal was sent. Once freeze has
	// returned, no thread may answer a request.
	if !Poll(10*time.Second, func() bool { return suspended(s.cmd.Process.Pid) }) {
		return fmt.Errorf("server %d does not stop on SIGSTOP", s.ID-1)
	}
	return nil
}

func (s *server) thaw() error {
	if s.cmd == nil || !s.frozen {
		return fmt.Errorf("server %d is not frozen", s.ID-1)
	}
	s.frozen = false
	return s.cmd.Process.Signal(syscall.SIGCONT)
}
