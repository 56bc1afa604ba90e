//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/zkstore"
)

// tries is the number of readings of each thing. The table has their median.
const tries = 5

// exitDegraded is the exit code of `flaked status` for a cluster with problems: here it is nearly
// full.
const exitDegraded = 4

// read measures what it takes to read the state of a cluster in which all nodes run.
func (s *storm) read(ctx context.Context, cluster string) error {
	if err := s.createSequences(ctx, cluster); err != nil {
		return err
	}
	s.reading.Row("", "first", "median of 5", "memory at most")
	if err := s.time("`flaked status`", func() (int64, error) { return s.status(ctx, cluster) }); err != nil {
		return err
	}
	for _, path := range []string{"/", "/metrics"} {
		if err := s.time("`GET "+path+"` of a node", func() (int64, error) { return 0, get("http://" + s.page + path) }); err != nil {
			return err
		}
	}
	return nil
}

// time adds a row for f, which returns the memory that it took in KiB, 0 if that is not known.
func (s *storm) time(what string, f func() (int64, error)) error {
	var took []float64
	var most int64
	for range tries {
		began := time.Now()
		kib, err := f()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		took, most = append(took, time.Since(began).Seconds()), max(most, kib)
	}
	first, memory := took[0], ""
	median, _ := figures.Median(took)
	if most > 0 {
		memory = fmt.Sprintf("%.0f MiB", float64(most)/1024)
	}
	s.reading.Row(what, fmt.Sprintf("%.0f ms", first*1000), fmt.Sprintf("%.0f ms", median*1000), memory)
	return nil
}

// status runs `flaked status`, and returns its resident memory at most, in KiB.
func (s *storm) status(ctx context.Context, cluster string) (kib int64, err error) {
	cmd := exec.CommandContext(ctx, s.flaked, "status", "--zk", s.zk, "--cluster", cluster)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitDegraded) {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss), nil
}

func get(url string) error {
	reply, err := http.Get(url)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return errors.New(reply.Status)
	}
	return nil
}

// createSequences creates the named sequences of the cluster.
func (s *storm) createSequences(ctx context.Context, cluster string) error {
	if s.sequences == 0 {
		return nil
	}
	zk, err := zkstore.NewZK(zkstore.ZKConfig{Connect: s.zk, Cluster: cluster})
	if err != nil {
		return err
	}
	connected, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = zk.Run(connected) }()
	defer func() { _ = zk.Close(); cancel(); <-ended }()
	o := seqstore.Operator{Store: zk, Now: func() int64 { return time.Now().UnixMilli() }, By: "storm"}
	for i := range s.sequences {
		const much = 1 << 30
		_, err := o.Create(ctx, seqstore.Definition{
			Name: fmt.Sprintf("order%d", i), Map: sequence.Map{Start: 1, Increment: 1, Max: much},
			Settings: seqstore.Settings{Block: sequence.MinBlock, SupplyMs: 60_000, HoldMs: 600_000, Ceiling: much, HardCeiling: much},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
