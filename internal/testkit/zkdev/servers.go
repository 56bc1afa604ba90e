//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

const maxServers = 3

// serversIn returns n servers with data below dir and client ports from port on.
func serversIn(dir string, n, port int) (servers []*zktest.Server) {
	for i := range n {
		s := &zktest.Server{ID: i + 1, Dir: filepath.Join(dir, fmt.Sprintf("node%d", i+1)), Client: port + i}
		if n > 1 {
			s.Quorum, s.Election = s.Client+707, s.Client+1707 // 2181 gives the customary 2888 and 3888
		}
		servers = append(servers, s)
	}
	return servers
}

var clientPort = regexp.MustCompile(`(?m)^clientPort=(\d{1,5})$`)

// known returns the servers of the last start in dir, or none if there was no start.
func known(dir string) ([]*zktest.Server, error) {
	for _, s := range slices.Backward(serversIn(dir, maxServers, 0)) {
		text, err := os.ReadFile(s.Config())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found := clientPort.FindSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%s has no clientPort. 'stop --wipe' clears the directory", s.Config())
		}
		port, _ := strconv.Atoi(string(found[1]))
		return serversIn(dir, s.ID, port-s.ID+1), nil
	}
	return nil, nil
}

func pidFile(s *zktest.Server) string { return filepath.Join(s.Dir, "pid") }

// pidOf returns the pid of the server's process, or 0 if the server does not run. Pids are
// reused, so the process must have been started with the server's configuration file.
func pidOf(s *zktest.Server) int {
	text, _ := os.ReadFile(pidFile(s))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if the process has ended
	if !slices.Contains(strings.Split(string(args), "\x00"), s.Config()) {
		return 0
	}
	return pid
}

// stopped returns the servers that do not run.
func stopped(servers []*zktest.Server) []*zktest.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *zktest.Server) bool { return pidOf(s) != 0 })
}

// end ends servers by SIGTERM, and by SIGKILL if that takes longer than 5 s.
func end(servers []*zktest.Server) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, s := range servers {
			pid := pidOf(s)
			if pid == 0 {
				continue
			}
			if signal == syscall.SIGKILL {
				say("server %d (pid %d) did not stop within 5 s, killing it", s.ID, pid)
			}
			_ = syscall.Kill(pid, signal)
			_ = syscall.Kill(pid, syscall.SIGCONT) // a process that SIGSTOP has stopped handles no SIGTERM
		}
		if zktest.Poll(5*time.Second, func() bool { return len(stopped(servers)) == len(servers) }) {
			return nil
		}
	}
	return errors.New("a server does not end on SIGKILL. Try again")
}
