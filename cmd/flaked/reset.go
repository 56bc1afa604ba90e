package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/localcache"
)

func resetCommand() *cli.Command {
	return &cli.Command{
		Name:  "reset-identity",
		Usage: "discard a node's identity, so that its next start registers a new node",
		Description: `Discards a node's identity for good: the next start in this state directory registers a
new node, with another worker. Use it if a clock that was far ahead has spoilt the
state, if the state was copied, or to free the worker for others. A backup stays in
the directory, and no node resumes it. The command is
refused while a node uses the directory.

It changes nothing in ZooKeeper: the worker stays held there, as stopped or disconnected,
until its lease expires. If no other copy of the state exists, you can safely free the
worker earlier, by flaked workers release --lower-bound with this --state-dir: the next
holder begins above the reserved bound in the backup. Without --lower-bound the worker
is not free before the lease expires.

Examples:
  flaked reset-identity --state-dir /var/lib/flaked
  flaked reset-identity --yes -o json`,
		Flags: []cli.Flag{
			stateDirFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do it without asking. Command line only", DisableDefaultText: true},
			outputFlag(),
		},
		Action: resetIdentity,
	}
}

// resetReport is the JSON of `flaked reset-identity`.
type resetReport struct {
	// Directories are --state-dir and, for a node with several workers, the directories
	// in it that have state.
	Directories []resetDir `json:"directories"`
}

// resetDir is one state directory. Record is as in `flaked state show`, null if no
// record could be trusted.
type resetDir struct {
	Dir string `json:"dir"`
	// Reset is true if a node could have resumed the state, or if the state was damaged.
	Reset  bool         `json:"reset"`
	Backup string       `json:"backup"`
	Record *stateRecord `json:"record"`
}

func resetIdentity(c *cli.Context) error {
	dir, err := givenStateDir(c)
	if err != nil {
		return err
	}
	found, err := inspectAll(dir)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return stateError(dir, fs.ErrNotExist)
	}
	if err := confirmReset(c, found); err != nil {
		return err
	}
	var report resetReport
	for _, was := range found {
		backup, err := localcache.TakeOutOfUse(was.Dir, time.Now())
		if err != nil {
			return resetRefused(stateError(was.Dir, err))
		}
		if was, err = reportState(was.Dir, backup.Loaded, false); err != nil {
			return err
		}
		report.Directories = append(report.Directories, resetDir{was.Dir, backup.Path != "", backup.Path, was.Record})
		if asJSON(c) {
			continue
		}
		if _, err := fmt.Fprintln(c.App.Writer, strings.Join(resetLines(dir, was, backup.Path, time.Now()), "\n")); err != nil {
			return err
		}
	}
	if asJSON(c) {
		return printJSON(c.App.Writer, report)
	}
	return nil
}

// inspectAll inspects a state directory and the directories of a node's other workers in it. It
// leaves out those without state. It returns an error if a node uses any of them.
func inspectAll(dir string) ([]stateReport, error) {
	var found []stateReport
	for _, at := range []string{dir} {
		loaded, locked, err := localcache.Inspect(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, stateError(at, err)
		case locked:
			return nil, resetRefused(fmt.Errorf("%w: a node uses %s", localcache.ErrLocked, at))
		default:
			report, err := reportState(at, loaded, false)
			if err != nil {
				return nil, err
			}
			found = append(found, report)
		}
	}
	return found, nil
}

func resetRefused(err error) error {
	if errors.Is(err, localcache.ErrLocked) {
		return exitWith(exitFailure, "%w. Stop the node first. Nothing was changed", err)
	}
	return err
}

// confirmReset asks for confirmation unless --yes is given or nothing would be lost.
func confirmReset(c *cli.Context, found []stateReport) error {
	var lost []string
	for _, was := range found {
		switch {
		case was.Status == "empty" || was.Status == "released":
		case was.Record == nil:
			lost = append(lost, "the content of "+was.Dir+", which cannot be read")
		default:
			lost = append(lost, fmt.Sprintf("the identity in %s, with worker %d of cluster %s", was.Dir, was.Record.Worker, printable(was.Record.Cluster)))
		}
	}
	if c.Bool("yes") || len(lost) == 0 {
		return nil
	}
	what := strings.Join(lost, "; ")
	if !isTerminal(c.App.Reader) {
		return usageError("this will be discarded for good: %s. Nothing was changed. To go on, add --yes", what)
	}
	typed, err := question(c, fmt.Sprintf("This will be discarded for good: %s.\nType reset to go on: ", what))
	if err == nil && typed != "reset" {
		return exitWith(exitFailure, "the typed word does not match \"reset\". Nothing was changed")
	}
	return err
}

func resetLines(dir string, was stateReport, backup string, now time.Time) []string {
	if backup == "" {
		return []string{"no node would resume the state in " + was.Dir + ": a node that starts there is a new one. Nothing was changed."}
	}
	lines := []string{
		"discarded the identity in " + was.Dir + ": a node that starts there is a new one",
		"backup: " + backup,
	}
	r := was.Record
	if r == nil {
		return append(lines, "the state could not be read, so its worker is unknown: flaked status shows that worker as stopped or disconnected until its lease expires")
	}
	state := "disconnected"
	if r.Stopped {
		state = "stopped"
	}
	lines = append(lines, fmt.Sprintf("worker %d of cluster %s stays held in ZooKeeper, as %s, until its lease expires: %s or a little later",
		r.Worker, printable(r.Cluster), state, clusterview.Instant(r.LeaseUntilMs, now)))
	if len(was.Changed) > 0 {
		return append(lines, "this was a copy of another node's state: do not release the worker, because the other node may be running")
	}
	if was.Damaged {
		return append(lines, "the state was damaged, so its reserved bound is unknown: do not release the worker before its lease expires")
	}
	return append(lines, fmt.Sprintf("to free the worker earlier, if there is no other copy of the state: flaked workers release %d --lower-bound --cluster %s --state-dir %s",
		r.Worker, printable(r.Cluster), dir))
}

// givenStateDir returns --state-dir as an absolute path.
func givenStateDir(c *cli.Context) (string, error) {
	dir := c.String("state-dir")
	if dir == "" {
		return "", usageError("--state-dir: no home directory found. Give --state-dir DIRECTORY")
	}
	return filepath.Abs(dir)
}

// stateError adds what to do to the error of reading a state directory.
func stateError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitWith(exitFailure, "--state-dir %s: no state found. Correct the path (FLAKED_STATE_DIR)", dir)
	case errors.Is(err, fs.ErrPermission):
		return exitWith(exitFailure, "%w. Run the command as the node's user", err)
	case errors.Is(err, syscall.ENOTDIR):
		return exitWith(exitFailure, "--state-dir %s: a part of the path is not a directory. Correct the path (FLAKED_STATE_DIR)", dir)
	}
	return err
}
