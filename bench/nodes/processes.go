//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/flaked/flaked/bench/local"
)

// node is a flaked process that listens on a unix socket, with an admin port that nobody asks.
type node struct {
	*local.Process
	socket string
	log    string // the path
	ready  bool
}

func startNode(program, zk, dir string) (*node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &node{socket: filepath.Join(dir, "s"), log: filepath.Join(dir, "log")}
	var err error
	n.Process, err = local.Start(n.log, program, "serve", "--zk", zk, "--state-dir", filepath.Join(dir, "state"),
		"--listen", "unix:"+n.socket, "--admin", "127.0.0.1:0", "--heartbeat", heartbeat.String())
	return n, err
}

// isReady reports whether the node has ever been ready. It asks the node until it is.
func (n *node) isReady() bool {
	if n.ready {
		return true
	}
	reply, err := local.Ask("unix", n.socket, "READY\n")
	n.ready = err == nil && strings.HasPrefix(reply, "OK")
	return n.ready
}

// lastLine returns the last line of the node's log: why it has ended.
func (n *node) lastLine() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
