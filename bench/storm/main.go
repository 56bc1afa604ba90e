//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/flaked/flaked/bench/local"
	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/worker"
)

type options struct {
	nodes     int
	dir       string
	quiet     time.Duration
	flaked    string
	sequences int
	limit     time.Duration
	docs      string
}

func main() {
	var o options
	var h host
	flag.IntVar(&o.nodes, "nodes", 1024, "the `number` of nodes, 2 to 1024: the workers of the default layout")
	flag.StringVar(&o.dir, "dir", memoryDir(), "a `directory` for the nodes' state. In memory, so that the disk is ZooKeeper's alone")
	flag.DurationVar(&o.quiet, "quiet", 30*time.Second, "how long to watch ZooKeeper while all nodes run")
	flag.StringVar(&o.flaked, "flaked", "bin/flaked", "the flaked `program`, for \"flaked status\"")
	flag.IntVar(&o.sequences, "sequences", 0, "create so many named sequences before reading the state (10000 take minutes)")
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "time limit for each phase")
	flag.StringVar(&o.docs, "docs", "", "write the table between the markers in this `file` (empty: none)")
	flag.StringVar(&h.zk, "inside", "", "be the process with the nodes, on these ZooKeeper `servers` (the harness sets it)")
	flag.StringVar(&h.cluster, "cluster", "", "with -inside: the cluster's `name`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case o.nodes < 2 || o.nodes > 1024 || flag.NArg() > 0:
		fmt.Fprintln(os.Stderr, "storm: -nodes must be 2 to 1024, and there are no arguments")
		os.Exit(2)
	case h.zk != "":
		h.nodes, h.dir = o.nodes, o.dir
		err = h.run(ctx)
	default:
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// memoryDir returns the file system in memory that Linux has, or the directory for temporary files.
func memoryDir() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

// storm is one run of the harness.
type storm struct {
	options
	zk      string
	page    string // where the first node serves its page, "host:port"
	table   figures.Table
	reading figures.Table
	issued  map[string]map[worker.ID]bool // by cluster: IDs are unique within one
	workers map[string]map[int]int        // by cluster: the worker of each node
}

func run(ctx context.Context, o options) (err error) {
	var dir string
	if dir, err = os.MkdirTemp("", "flaked-storm"); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.dir, err = os.MkdirTemp(o.dir, "flaked-storm"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	zkDir := filepath.Join(dir, "zk")
	zk, err := local.StartEnsemble(zkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.StopZooKeeper(zkDir)) }()
	s := &storm{options: o, zk: zk, issued: map[string]map[worker.ID]bool{}, workers: map[string]map[int]int{}}
	s.table.Row("", "half ready after", "all ready after", "ZooKeeper: requests", "writes", "mean ms", "longest ms", "waiting at most")
	err = s.phases(ctx, zkDir)
	text := fmt.Sprintf("Measured on %s by `make storm NODES=%d`: %d nodes in one process, three ZooKeeper servers on the same machine, a heartbeat every 3 s. %s.\n\n%s\nReading the state while all run, with %s named sequences:\n\n%s",
		time.Now().UTC().Format(time.DateOnly), o.nodes, o.nodes, figures.ThisMachine(), s.table.String(), figures.Thousands(float64(o.sequences)), s.reading.String())
	fmt.Print(text)
	if err != nil || o.docs == "" {
		return err
	}
	return figures.Between(o.docs, "storm", text)
}

func (s *storm) phases(ctx context.Context, zkDir string) error {
	first, err := s.phase(ctx, "all start as new nodes of a new cluster", "first", nil)
	if err != nil {
		return err
	}
	first.kill()
	again, err := s.phase(ctx, "all were killed by SIGKILL and start again", "first", nil)
	if err != nil {
		return err
	}
	if err := s.watchQuiet(ctx); err != nil {
		return err
	}
	if err := s.read(ctx, "first"); err != nil {
		return err
	}
	again.kill()
	last, err := s.phase(ctx, "all start as new nodes of a new cluster, and ZooKeeper's leader is killed when half have a worker", "second", func() error { return killLeader(s.zk, zkDir) })
	if err != nil {
		return err
	}
	last.kill()
	return nil
}

// watchQuiet adds a row with ZooKeeper's load while all nodes run.
func (s *storm) watchQuiet(ctx context.Context) error {
	if err := local.Pause(ctx, 10*time.Second); err != nil { // the first heartbeats of nodes that came back cost more
		return err
	}
	end := watch(s.zk)
	err := local.Pause(ctx, s.quiet)
	l := end()
	s.row("all run, for a second", "", "", l, l.took.Seconds())
	return err
}

// row adds the load of ZooKeeper, its counts divided by per.
func (s *storm) row(what, half, all string, l load, per float64) {
	s.table.Row(what, half, all, figures.Thousands(float64(l.requests)/per), figures.Thousands(float64(l.writes)/per),
		fmt.Sprintf("%.1f", l.latency.Mean), fmt.Sprintf("%.0f", l.latency.Longest), figures.Thousands(float64(l.waiting)))
	fmt.Fprintf(os.Stderr, "storm: %s: done after %s\n", what, seconds(l.took))
}

// phase starts all nodes of a cluster, and waits until all are ready. When half have a worker, it
// calls halfway.
func (s *storm) phase(ctx context.Context, what, cluster string, halfway func() error) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("%s: not all were ready after %s", what, s.limit))
	defer cancel()
	end := watch(s.zk)
	began := time.Now()
	p, err := s.startProcess(cluster)
	if err != nil {
		return nil, err
	}
	ready, half := 0, ""
	for ready < s.nodes {
		var e event
		select {
		case <-ctx.Done():
			p.kill()
			return nil, fmt.Errorf("%w: %d of %d are", context.Cause(ctx), ready, s.nodes)
		case next, ok := <-p.events:
			if !ok {
				return nil, fmt.Errorf("%s: the process with the nodes has ended", what)
			}
			e = next
		}
		if e.Page != "" {
			s.page = e.Page
			continue
		}
		if e.Holding > 0 {
			if halfway != nil && e.Holding >= s.nodes/2 {
				if err := halfway(); err != nil {
					return nil, err
				}
				halfway = nil
			}
			continue
		}
		if err := s.check(cluster, e); err != nil {
			p.kill()
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if ready++; ready == s.nodes/2 {
			half = seconds(time.Since(began))
		}
	}
	all := seconds(time.Since(began))
	s.row(what, half, all, end(), 1)
	return p, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// check returns an error if a node has ended, has another node's worker or another one than
// before, or has an ID that was issued before.
func (s *storm) check(cluster string, e event) error {
	if e.Ended != "" {
		return fmt.Errorf("node %d ended: %s", e.Node, e.Ended)
	}
	if s.issued[cluster] == nil {
		s.issued[cluster], s.workers[cluster] = map[worker.ID]bool{}, map[int]int{}
	}
	for _, id := range e.IDs {
		if s.issued[cluster][id] {
			return fmt.Errorf("ID %d was issued twice, the second time by node %d", id, e.Node)
		}
		s.issued[cluster][id] = true
	}
	before, ok := s.workers[cluster][e.Node]
	if ok && before != e.Worker {
		return fmt.Errorf("node %d had worker %d and came back with %d", e.Node, before, e.Worker)
	}
	for other, w := range s.workers[cluster] {
		if w == e.Worker && other != e.Node {
			return fmt.Errorf("nodes %d and %d have worker %d", other, e.Node, w)
		}
	}
	s.workers[cluster][e.Node] = e.Worker
	return nil
}

// process is a process with all nodes.
type process struct {
	cmd    *exec.Cmd
	events chan event // closed when the process has ended
}

func (s *storm) startProcess(cluster string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{exec.Command(self, "-inside", s.zk, "-cluster", cluster, "-dir", s.dir, "-nodes", fmt.Sprint(s.nodes)), make(chan event, 2*s.nodes)}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				p.events <- e
			}
		}
	}()
	return p, nil
}

// kill ends the process by SIGKILL, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.events { // its last lines
	}
	_ = p.cmd.Wait()
}

// killLeader kills the server that leads.
func killLeader(zk, zkDir string) error {
	leader, err := local.LeaderOf(zk)
	if err != nil {
		return err
	}
	return local.KillServer(zkDir, leader)
}
