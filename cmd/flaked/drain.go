package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
	"github.com/flaked/flaked/localcache"
)

func drainCommand() *cli.Command {
	return &cli.Command{
		Name:  "drain",
		Usage: "stop the node of a state directory without cutting its clients",
		Description: `Stops the node on this machine that uses --state-dir:
  1. It reports that it is not ready (READY and /readyz), and accepts no more
     connections. Load balancers and clients turn to other nodes.
  2. It goes on answering its open connections until all are closed, or for
     serve --drain-time (10s).
  3. It stops as on SIGTERM: it answers what it has read and stores its bounds.
     It keeps its worker for the next start. With --release it gives the worker back,
     and the next start acquires another one, unless registration is frozen: then no node
     could acquire it, so the node keeps it.

The command waits for the end of the process. Run it on the same machine, in the same
container, as root or as the node's user. Exits with 0 if the node has stopped, with 3 if the
directory exists and no running node uses it, and with 1 otherwise: no such directory, no
permission, not stopped in time, or no clean stop stored. To stop a node for good, let its
supervisor drain it: ExecStop= in systemd, preStop in Kubernetes.

Examples:
  flaked drain --state-dir /var/lib/flaked
  flaked drain --state-dir /var/lib/flaked --release   # before the machine goes away`,
		Flags: []cli.Flag{
			stateDirFlag(),
			inCategory(categoryCommandLineOnly, &cli.BoolFlag{Name: "release", Usage: "release the worker",
				DisableDefaultText: true})[0],
			&cli.DurationFlag{Name: "timeout", Usage: "how long to wait until the node's process has ended",
				Value: 30 * time.Second},
		},
		Action: drain,
	}
}

// drain sends the signal on which process.drain in serve_drain.go waits, and waits until the process has ended.
func drain(c *cli.Context) error {
	dir, err := readStateDir(c)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	timeout := c.Duration("timeout")
	if timeout <= 0 {
		return usageError("--timeout must be positive, not %s", timeout)
	}
	x, err := localcache.Examine(dir)
	if err != nil {
		return stateReadError(dir, err)
	}
	defer x.Close()
	switch {
	case x.Missing:
		return stateReadError(dir, fs.ErrNotExist)
	case !x.Locked:
		return exitError(exitUnreachable, "no running node uses %s. If a node runs with another state directory, give "+
			"--state-dir (FLAKED_STATE_DIR). If it runs in a container, run this command there", dir)
	case x.LockedBy == 0:
		return failure("the process that uses %s is in a container. Run this command there", dir)
	}
	signal := drainSignal
	if c.Bool("release") {
		signal = releaseSignal
	}
	began := time.Now()
	switch err := signalAndWait(c.Context, x.LockedBy, signal, timeout); {
	case errors.Is(err, syscall.EPERM):
		return failure("no permission to signal process %d, the node of %s. Run the command as root or "+
			"as the node's user", x.LockedBy, dir)
	case errors.Is(err, errors.ErrUnsupported):
		return failure("this command needs Linux. Send SIGUSR1 to the node's process")
	case errors.Is(err, errStillRuns):
		return failure("process %d still runs %s after it was asked to drain. Its --drain-time may be "+
			"longer: wait with --timeout, or stop it at once with SIGTERM", x.LockedBy, timeout)
	case err != nil:
		return err
	}
	return reportDrained(c, x, time.Since(began))
}

var errStillRuns = errors.New("the process still runs")

// reportDrained prints what the node has left in its state directory.
func reportDrained(c *cli.Context, x localcache.Examination, took time.Duration) error {
	left, err := x.ReadState()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a node that releases its worker deletes its state
		return stateReadError(x.Place, err)
	}
	text := "it holds no worker any more"
	if left.Status == localcache.StatusRecord {
		rec, err := node.DecodeRecord(left.Record)
		if err != nil {
			return err
		}
		if !rec.Stopped {
			return failure("the node has ended, but did not record a clean stop of worker %d. Its log "+
				"says why. The next start is safe, and may wait a few seconds", rec.Claim.Worker)
		}
		text = fmt.Sprintf("worker %d is kept for its next start until %s", rec.Claim.Worker,
			words.Moment(rec.Claim.LeaseUntil, time.Now()))
	}
	return printText(c, "drained and stopped in %s: %s\n", took.Round(time.Millisecond), text)
}

// stateReadError adds what to do to the error of reading a state directory.
func stateReadError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure("--state-dir %s: no state found. Correct the path (FLAKED_STATE_DIR)", dir)
	case errors.Is(err, fs.ErrPermission):
		return failure("%w. Run the command as the node's user", err)
	}
	return err
}
