//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/internal/figures"
)

type options struct {
	counts  []int
	flaked  string
	before  string
	watch   time.Duration
	patient time.Duration
	docs    string
}

func main() {
	var o options
	counts := flag.String("nodes", "1,3,20,300", "numbers of nodes to measure, one after the other")
	flag.StringVar(&o.flaked, "flaked", "bin/flaked", "the flaked `program`")
	flag.StringVar(&o.before, "before", "", "another flaked `program` to measure beside it")
	flag.DurationVar(&o.watch, "watch", 30*time.Second, "time to observe ZooKeeper's counters after all nodes are ready")
	flag.DurationVar(&o.patient, "patient", 5*time.Minute, "time limit until all nodes are ready")
	flag.StringVar(&o.docs, "docs", "docs/performance.md", "write the table between the markers in this file (empty: none)")
	flag.Parse()
	for part := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > 2000 {
			fmt.Fprintf(os.Stderr, "nodes: -nodes %q must be numbers from 1 to 2000, separated by commas\n", *counts)
			os.Exit(2)
		}
		o.counts = append(o.counts, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "nodes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Measured on %s by `make bench-nodes`: one ZooKeeper and all nodes on one machine, a heartbeat every 3 s, figures of ZooKeeper's own counters over %s. %s.\n\n",
		time.Now().UTC().Format(time.DateOnly), o.watch, figures.ThisMachine())
	fmt.Fprint(&text, "| nodes | | all ready after | and after SIGKILL of all | ended | for a node and heartbeat: requests | writes | bytes to ZooKeeper | bytes from it | for a node and second: ms of CPU | switches of threads |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, n := range o.counts {
		for _, program := range []struct{ name, path string }{{"before", o.before}, {"flaked", o.flaked}} {
			if program.path == "" {
				continue
			}
			m, err := measure(ctx, program.path, n, o)
			if err != nil {
				return err
			}
			row := m.row(n, program.name)
			fmt.Print(row)
			text.WriteString(row)
		}
	}
	if o.docs == "" {
		return nil
	}
	return figures.Between(o.docs, "nodes", text.String())
}

// measured holds the figures of one number of nodes.
type measured struct {
	ready time.Duration // until all were. 0: not all
	again time.Duration // the same after all were killed by SIGKILL and started again
	ended int           // processes that ended by themselves
	// A node's own cost in a second.
	cpu   time.Duration
	waits float64 // of threads
	// ZooKeeper's load for each node and heartbeat. in and out are bytes.
	requests, writes, in, out float64
}

func (m measured) row(n int, name string) string {
	return fmt.Sprintf("| %d | %s | %s | %s | %d | %.1f | %.2f | %.0f | %.0f | %.1f | %.0f |\n", n, name, after(m.ready), after(m.again), m.ended,
		m.requests, m.writes, m.in, m.out, float64(m.cpu)/1e6, m.waits)
}

// after words how long it took until all were ready. 0: not all were.
func after(d time.Duration) string {
	if d == 0 {
		return "not all"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

const heartbeat = 3 * time.Second

func measure(ctx context.Context, program string, n int, o options) (m measured, err error) {
	dir, err := os.MkdirTemp("", "flaked-nodes")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	zkDir := filepath.Join(dir, "zk")
	zk, err := local.StartZooKeeper(zkDir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, local.StopZooKeeper(zkDir)) }()
	init := exec.CommandContext(ctx, program, "cluster", "init", "--zk", zk)
	if out, err := init.CombinedOutput(); err != nil {
		return m, fmt.Errorf("flaked cluster init: %w: %s", err, out)
	}
	var nodes []*node
	defer func() {
		for _, n := range nodes {
			n.Stop()
		}
	}()
	start := func() (time.Duration, error) {
		nodes = nil
		began := time.Now()
		for i := range n {
			node, err := startNode(program, zk, filepath.Join(dir, fmt.Sprint("n", i)))
			if err != nil {
				return 0, err
			}
			nodes = append(nodes, node)
		}
		return allReady(ctx, nodes, began, o.patient), nil
	}
	if m.ready, err = start(); err != nil {
		return m, err
	}
	if err := m.watch(ctx, zk, nodes, o.watch); err != nil {
		return m, err
	}
	for _, n := range nodes {
		n.Kill()
	}
	m.again, err = start()
	return m, err
}

// allReady waits until all nodes that have not ended are ready, and returns how long that took since
// began: 0 if it took longer than limit, or if a node has ended.
func allReady(ctx context.Context, nodes []*node, began time.Time, limit time.Duration) time.Duration {
	for time.Since(began) < limit && ctx.Err() == nil {
		waiting, ended := 0, 0
		for _, n := range nodes {
			switch {
			case n.Ended():
				ended++
			case !n.isReady():
				waiting++
			}
		}
		switch {
		case waiting == 0 && ended == 0:
			return time.Since(began)
		case waiting == 0:
			return 0
		}
		_ = local.Pause(ctx, 50*time.Millisecond)
	}
	for _, n := range nodes {
		if !n.Ended() && !n.isReady() {
			fmt.Fprintln(os.Stderr, "nodes: a node is not ready:", n.lastLine())
		}
	}
	return 0
}

// watch measures the load on ZooKeeper, and what the nodes use, over d.
func (m *measured) watch(ctx context.Context, zk string, nodes []*node, d time.Duration) error {
	// Leave out the first heartbeats of the nodes that were ready last.
	if err := local.Pause(ctx, 2*heartbeat); err != nil {
		return err
	}
	before, err := local.CountersOf(zk)
	if err != nil {
		return err
	}
	from, used := time.Now(), usage(nodes)
	if err := local.Pause(ctx, d); err != nil {
		return err
	}
	after, err := local.CountersOf(zk)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Ended() {
			m.ended++
			fmt.Fprintln(os.Stderr, "nodes: a node ended:", n.lastLine())
		}
	}
	seconds := float64(len(nodes)-m.ended) * time.Since(from).Seconds()
	beats := seconds / heartbeat.Seconds()
	m.requests, m.writes = float64(after.Requests-before.Requests)/beats, float64(after.Zxid-before.Zxid)/beats
	m.in, m.out = float64(after.In-before.In)/beats, float64(after.Out-before.Out)/beats
	now := usage(nodes)
	m.cpu, m.waits = time.Duration(float64(now.CPU-used.CPU)/seconds), float64(now.Waits-used.Waits)/seconds
	return nil
}

// usage returns what all nodes together have used.
func usage(nodes []*node) (sum local.Usage) {
	for _, n := range nodes {
		u := n.Usage()
		sum.CPU, sum.Waits = sum.CPU+u.CPU, sum.Waits+u.Waits
	}
	return sum
}
