//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flaked/flaked/bench/local"
)

// counters holds ZooKeeper's counters since its start: requests received, bytes received
// (in) and bytes sent (out). zxid counts the writes.
type counters struct{ received, zxid, in, out int64 }

func countersOf(zk string) (c counters, err error) {
	mntr, err := local.Ask("tcp", zk, "mntr")
	if err != nil {
		return c, err
	}
	srvr, err := local.Ask("tcp", zk, "srvr")
	if err != nil {
		return c, err
	}
	for name, to := range map[string]*int64{"zk_packets_received": &c.received, "zk_bytes_received_count": &c.in, "zk_response_bytes": &c.out} {
		if *to, err = number(mntr, name, 10); err != nil {
			return c, err
		}
	}
	c.zxid, err = number(srvr, "Zxid:", 0)
	return c, err
}

// number returns the number after name on a line of these two words. With base 0 it takes a
// prefix as 0x. With any other base it takes a decimal number and drops a fraction.
func number(text, name string, base int) (int64, error) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			f, err := strconv.ParseFloat(fields[1], 64)
			if base == 0 {
				return strconv.ParseInt(fields[1], 0, 64)
			}
			return int64(f), err
		}
	}
	return 0, fmt.Errorf("ZooKeeper did not report %s", name)
}

// node is a flaked process that listens only on a unix socket.
type node struct {
	*local.Process
	socket string
	ready  bool
}

func startNode(program, zk, dir string) (*node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &node{socket: filepath.Join(dir, "s")}
	var err error
	n.Process, err = local.Start(filepath.Join(dir, "log"), program, "serve", "--zk", zk, "--state-dir", filepath.Join(dir, "state"),
		"--listen", "unix:"+n.socket, "--admin", "off", "--heartbeat", heartbeat.String())
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
