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
	fmt.Fprint(&text, "| nodes | | all ready after | ended | for a node and heartbeat: requests | writes | bytes to ZooKeeper | bytes from it |\n|---|---|---|---|---|---|---|---|\n")
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
	ended int           // processes that ended by themselves
	// ZooKeeper's load for each node and heartbeat. in and out are bytes.
	requests, writes, in, out float64
}

func (m measured) row(n int, name string) string {
	ready := "not all"
	if m.ready > 0 {
		ready = m.ready.Round(100 * time.Millisecond).String()
	}
	return fmt.Sprintf("| %d | %s | %s | %d | %.1f | %.2f | %.0f | %.0f |\n", n, name, ready, m.ended, m.requests, m.writes, m.in, m.out)
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
	began := time.Now()
	var nodes []*node
	defer func() {
		for _, n := range nodes {
			n.Stop()
		}
	}()
	for i := range n {
		node, err := startNode(program, zk, filepath.Join(dir, fmt.Sprint("n", i)))
		if err != nil {
			return m, err
		}
		nodes = append(nodes, node)
	}
	waiting := n
	for waiting > 0 && time.Since(began) < o.patient && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		waiting, m.ended = 0, 0
		for _, n := range nodes {
			switch {
			case n.Ended():
				m.ended++
			case !n.isReady():
				waiting++
			}
		}
	}
	if waiting == 0 && m.ended == 0 {
		m.ready = time.Since(began)
	}
	// Leave out the first heartbeats of the nodes that were ready last.
	if err := local.Pause(ctx, 2*heartbeat); err != nil {
		return m, err
	}
	before, err := countersOf(zk)
	if err != nil {
		return m, err
	}
	from := time.Now()
	if err := local.Pause(ctx, o.watch); err != nil {
		return m, err
	}
	after, err := countersOf(zk)
	if err != nil {
		return m, err
	}
	beats := float64(n-m.ended) * time.Since(from).Seconds() / heartbeat.Seconds()
	m.requests, m.writes = float64(after.received-before.received)/beats, float64(after.zxid-before.zxid)/beats
	m.in, m.out = float64(after.in-before.in)/beats, float64(after.out-before.out)/beats
	return m, nil
}
