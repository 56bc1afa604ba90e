//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// start starts the servers that do not run, waits until all serve, and prints their addresses.
func start(dir string, nodes, port int) error {
	servers, err := known(dir)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		servers = serversIn(dir, max(nodes, 1), 2181)
	}
	n, last, running := len(servers), servers[0].Client, len(servers)-len(stopped(servers))
	did := fmt.Sprintf("ready, %d server(s)", n)
	switch {
	case nodes > 0 && nodes != n:
		return fmt.Errorf("%s has the data of %d server(s), not %d. Run 'stop --wipe' first, or use another --dir", dir, n, nodes)
	case running > 0 && port > 0 && port != last:
		return fmt.Errorf("already running on port %d, not %d. Run 'stop' first, or use another --dir", last, port)
	case running == n:
		did = "already running"
		if err = await(servers); err != nil {
			err = fmt.Errorf("%w\nit is running but not serving. Run 'stop', then 'start'", err)
		}
	case running == 0 && port == 0:
		// Another process may take a port that was free a moment ago. Then Java says "Address".
		for range 20 {
			servers = serversIn(dir, n, zktest.RandomPort())
			err = startStopped(servers)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), "address already in use") {
				break
			}
		}
	case running == 0 && port > 0:
		servers = serversIn(dir, n, port)
		err = startStopped(servers)
	default:
		err = startStopped(servers)
	}
	if err != nil {
		return err
	}
	say("%s (data and logs: %s)", did, dir)
	var addresses []string
	for _, s := range servers {
		addresses = append(addresses, s.Addr())
	}
	fmt.Println(strings.Join(addresses, ","))
	return nil
}

// startStopped starts the servers that do not run, and waits until all servers serve. If this
// fails, it ends those that it started.
func startStopped(servers []*zktest.Server) error {
	down := stopped(servers)
	for _, s := range down {
		for _, port := range []int{s.Client, s.Quorum, s.Election} { // TryPort(0) succeeds
			if port > 65535 {
				return fmt.Errorf("--port is too high: the servers need port %d, and the highest port is 65535", port)
			}
			if err := zktest.TryPort(port); err != nil {
				return fmt.Errorf("%w. If that is your ZooKeeper: export FLAKED_ZK=127.0.0.1:%d. Else choose other ports with --port N, or free ones with --port 0", err, port)
			}
		}
	}
	for _, s := range down {
		if len(down) < len(servers) {
			break // those that run have read their files, which name all ports
		}
		if err := s.Configure(servers); err != nil {
			return err
		}
	}
	err := launch(down)
	if err == nil {
		err = await(servers)
	}
	if err != nil {
		err = errors.Join(err, end(down))
	}
	return err
}

// launch starts servers in sessions of their own, so that neither Ctrl-C nor the end of this
// terminal stops them.
func launch(servers []*zktest.Server) error {
	prog := zktest.Program{Java: os.Getenv("FLAKED_ZK_JAVA"), Classpath: os.Getenv("FLAKED_ZK_CLASSPATH")}
	for _, s := range servers {
		_ = os.Rename(s.LogFile(), s.LogFile()+".old") // a failed start shows its own log only
		cmd, err := s.Launch(prog, func(cmd *exec.Cmd) error {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return cmd.Start()
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(pidFile(s), fmt.Appendln(nil, cmd.Process.Pid), 0o600); err != nil {
			return err
		}
		// Just after exec the kernel shows no arguments yet, and pidOf does not recognise the process.
		zktest.Poll(5*time.Second, func() bool { return pidOf(s) != 0 })
	}
	return nil
}

// await waits until the servers serve. It fails at once if one of them has ended.
func await(servers []*zktest.Server) error {
	return zktest.Await(servers, func() []*zktest.Server { return stopped(servers) })
}
