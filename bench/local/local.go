// Package local has what the benchmarks share: it starts a ZooKeeper and programs on this
// machine, and sends requests to servers.
package local

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// StartZooKeeper starts a ZooKeeper with its data in dir, by scripts/zk-dev.sh below the
// working directory, and returns its address.
func StartZooKeeper(dir string) (address string, err error) { return start(dir, 1) }

// StartEnsemble is StartZooKeeper for three servers.
func StartEnsemble(dir string) (addresses string, err error) { return start(dir, 3) }

func start(dir string, servers int) (addresses string, err error) {
	cmd := exec.Command("scripts/zk-dev.sh", "start", "--nodes", fmt.Sprint(servers), "--port", "0", "--dir", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/zk-dev.sh start: %w", err)
	}
	_, addresses, ok := strings.Cut(strings.TrimSpace(string(out)), "FLAKED_ZK=")
	if !ok {
		return "", fmt.Errorf("scripts/zk-dev.sh start printed %q", out)
	}
	return strings.Trim(addresses, `'"`), nil
}

// StopZooKeeper ends the ZooKeeper in dir and deletes its data.
func StopZooKeeper(dir string) error {
	return exec.Command("scripts/zk-dev.sh", "stop", "--wipe", "--dir", dir).Run()
}

// KillServer ends one server of the ensemble in dir by SIGKILL. at is its place in what
// StartEnsemble has returned, from 0.
func KillServer(dir string, at int) error {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("node%d", at+1), "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

// Pause blocks for d. It returns the error of ctx if ctx ends earlier.
func Pause(ctx context.Context, d time.Duration) error {
	pause, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-pause.Done()
	return ctx.Err()
}

// askTime is the timeout of a connection attempt, and again of a request and its reply.
const askTime = 5 * time.Second

// Ask sends a request on a connection of its own, and then closes its own side. It returns all
// that the server sends before it closes the connection.
func Ask(network, address, request string) (string, error) {
	nc, err := net.DialTimeout(network, address, askTime)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(askTime))
	if _, err := io.WriteString(nc, request); err != nil {
		return "", err
	}
	if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(nc)
	return string(reply), err
}
