package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/credentials"
)

func rollingRestartCommand() *cli.Command {
	return &cli.Command{
		Name:      "rolling-restart",
		Usage:     "restart nodes one after the other, each when all others are ready",
		ArgsUsage: "-- COMMAND [ARGUMENT...]",
		Description: `Runs COMMAND for each node of --addr, in this order, and waits until the restarted node
is ready before it turns to the next one. COMMAND must restart the node. It runs here,
without a shell. In its arguments {host}, {port} and {addr} stand for the node's address.

Before each restart, all other nodes must be ready. The command stops at the first
failure: if another node is not ready, if COMMAND fails, or if the node is not ready
again in time (--ready-within). It then prints which nodes are left. Not more than one
node is ever down because of it.

Exits with 0 if all nodes were restarted, with 3 if a node did not answer, and with 1
after another failure.

Examples:
  flaked rolling-restart --addr ids-1:7609,ids-2:7609,ids-3:7609 \
    -- ssh {host} sudo systemctl restart flaked
  flaked rolling-restart --addr ids-1:7609,ids-2:7609 --token-file token \
    -- docker -H ssh://{host} restart flaked`,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "addr", Usage: "the nodes, `HOST:PORT` or unix:/PATH, separated by commas. Repeatable. Required"},
			&cli.DurationFlag{Name: "ready-within", EnvVars: env("ready-within"), Value: 2 * time.Minute, Usage: "how long COMMAND and the start of a node may take together"},
		}, accessFlags()...),
		Action: rollingRestart,
	}
}

// replyWithin bounds one question to a node.
const replyWithin = 2 * time.Second

// lookEvery is the interval between two looks at a node that starts.
const lookEvery = 200 * time.Millisecond

func rollingRestart(c *cli.Context) error {
	access, err := nodeAccess(c)
	if err != nil {
		return err
	}
	r := restarter{addrs: c.StringSlice("addr"), command: c.Args().Slice(), within: c.Duration("ready-within"), out: c.App.Writer, errOut: c.App.ErrWriter}
	r.look = func(ctx context.Context, addr string) (nodeState, error) { return lookAt(ctx, access, addr) }
	switch {
	case len(r.addrs) == 0:
		return usageError("--addr is required. Give the addresses of all nodes, separated by commas")
	case len(r.command) == 0:
		return usageError("COMMAND is missing. Give the command that restarts a node after --, such as -- ssh {host} systemctl restart flaked")
	case r.within <= 0:
		return usageError("--ready-within must be positive, not %s", r.within)
	}
	for i, addr := range r.addrs {
		if _, _, err := splitAddr(addr); err != nil {
			return usageError("--addr: %w", err)
		}
		if slices.Contains(r.addrs[:i], addr) {
			return usageError("--addr: %s is given twice", addr)
		}
	}
	return r.run(c.Context)
}

// nodeState is what a node says of itself.
type nodeState struct {
	started string // differs between two processes
	ready   bool
	worker  string
	reason  string // why it is not ready
}

// lookAt asks a node for its state.
func lookAt(ctx context.Context, access credentials.Client, addr string) (nodeState, error) {
	stats, err := askStats(ctx, access, addr, replyWithin)
	if err != nil {
		return nodeState{}, err
	}
	return nodeState{started: stats["started_ms"], ready: stats["ready"] == "true", worker: stats["worker"], reason: stats["reason"]}, nil
}

// restarter restarts nodes one after the other.
type restarter struct {
	addrs       []string
	command     []string
	within      time.Duration // for each node
	look        func(ctx context.Context, addr string) (nodeState, error)
	out, errOut io.Writer
}

func (r restarter) run(ctx context.Context) error {
	for i, addr := range r.addrs {
		began := time.Now()
		before, after, err := r.restart(ctx, addr)
		if err != nil {
			return r.stopped(i, err)
		}
		worker := "worker " + after.worker
		if before.worker != after.worker && before.worker != "" {
			worker += " (was " + before.worker + ")"
		}
		fmt.Fprintf(r.out, "%s restarted and ready after %s, %s, %d of %d\n", addr, time.Since(began).Round(100*time.Millisecond), worker, i+1, len(r.addrs))
	}
	return nil
}

// stopped adds to the error of the node at index i what has been done and what is left.
func (r restarter) stopped(i int, err error) error {
	return fmt.Errorf("%w. Restarted so far: %d of %d. Correct the cause, then run the command again with --addr %s for those that are left, and check the others with flaked status",
		err, i, len(r.addrs), strings.Join(r.addrs[i:], ","))
}

// restart restarts the node at addr, and returns its state before and after.
func (r restarter) restart(ctx context.Context, addr string) (before, after nodeState, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.within, errTooSlow)
	defer cancel()
	for _, other := range r.addrs {
		if other == addr {
			continue
		}
		switch s, err := r.look(ctx, other); {
		case err != nil:
			return before, after, fmt.Errorf("%s was not restarted, because another node does not answer: %w", addr, err)
		case !s.ready:
			return before, after, exitWith(exitFailure, "%s was not restarted, because %s is not ready (%s)", addr, other, s.reason)
		}
	}
	// A node that is down or not ready may be restarted.
	before, _ = r.look(ctx, addr)
	if err := r.execute(ctx, addr); err != nil {
		return before, after, err
	}
	after, err = r.await(ctx, addr, before)
	return before, after, err
}

var errTooSlow = errors.New("not ready in time")

// execute runs the command that restarts a node.
func (r restarter) execute(ctx context.Context, addr string) error {
	args := substituted(r.command, addr)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = r.errOut, r.errOut
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errTooSlow):
		return exitWith(exitFailure, "%s: the command has not ended within %s (--ready-within): %s", addr, r.within, strings.Join(args, " "))
	case errors.As(err, &ended):
		return exitWith(exitFailure, "%s: the command failed with exit code %d: %s", addr, ended.ExitCode(), strings.Join(args, " "))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitWith(exitFailure, "%s: command %s not found", addr, args[0])
	}
	return err
}

// substituted returns the arguments of a command for the node at addr.
func substituted(command []string, addr string) []string {
	host, port := addr, ""
	if network, address, err := splitAddr(addr); err == nil && network == "tcp" {
		host, port, _ = net.SplitHostPort(address)
	}
	replacer := strings.NewReplacer("{host}", host, "{port}", port, "{addr}", addr)
	args := make([]string, len(command))
	for i, arg := range command {
		args[i] = replacer.Replace(arg)
	}
	return args
}

// await waits until the node at addr is ready and is not the process that it was before.
func (r restarter) await(ctx context.Context, addr string, before nodeState) (nodeState, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := r.look(ctx, addr)
		if err == nil && now.ready && now.started != before.started {
			return now, nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if !errors.Is(context.Cause(ctx), errTooSlow) {
			return now, ctx.Err()
		}
		return now, exitWith(exitFailure, "%s is not ready again within %s (--ready-within): %s", addr, r.within, lacks(now, before, err))
	}
}

// lacks says why a node is not restarted yet.
func lacks(now, before nodeState, err error) string {
	switch {
	case now.started != "" && now.started == before.started:
		return "the same process still runs, so the command did not restart it"
	case now.started != "":
		return "it answers " + now.reason
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return plain(err.Error())
	}
	return "it does not answer"
}
