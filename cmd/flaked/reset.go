package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/localcache"
)

func resetCommand() *cli.Command {
	return &cli.Command{
		Name:      "reset-identity",
		Usage:     "make a node's state directory unusable, so that it starts as a new node",
		UsageText: "flaked reset-identity [flags]",
		Description: `For a node that is not to go on as who it was: its state is poisoned by a clock that
was far ahead, it was copied, or its worker is to be freed for others. The record in the
state directory is ended for good; a copy stays beside it that no node resumes. A node
that is started there registers as a new one, with another worker. Of a node with
several workers it is all of them. Refused while a node uses the directory.

Changes nothing in ZooKeeper: the worker that the node had stays its own there, stopped or
detached, until its lease ends. flaked workers release frees it before, safely now, if no
other copy of the state is anywhere; it takes from the copy how far the node had come.

Examples:
  flaked reset-identity --state-dir /var/lib/flaked
  flaked reset-identity --yes -o json`,
		Flags: []cli.Flag{
			stateDirFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do it without asking. On the command line alone", DisableDefaultText: true},
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
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	dir, err := givenStateDir(c)
	if err != nil {
		return err
	}
	found, err := inspectAll(dir)
	if err != nil {
		return err
	}
	if err := confirmReset(c, found); err != nil {
		return err
	}
	var report resetReport
	for _, was := range found {
		aside, err := localcache.SetAside(was.Dir, time.Now())
		if err != nil {
			return resetRefused(stateError(was.Dir, err))
		}
		if was, err = reportState(was.Dir, aside.Loaded, false); err != nil {
			return err
		}
		report.Directories = append(report.Directories, resetDir{was.Dir, aside.Backup != "", aside.Backup, was.Record})
		if format == formatJSON {
			continue
		}
		for _, line := range resetLines(dir, was, aside.Backup, time.Now()) {
			if _, err := fmt.Fprintln(c.App.Writer, line); err != nil {
				return err
			}
		}
	}
	if format == formatJSON {
		return printJSON(c.App.Writer, report)
	}
	return nil
}

// inspectAll inspects a state directory and the directories of a node's other workers in it. It
// returns an error if a node uses any of them.
func inspectAll(dir string) ([]stateReport, error) {
	var found []stateReport
	var none error
	for i, at := range stateDirs(dir, maxWorkers) {
		loaded, locked, err := localcache.Inspect(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if i == 0 {
				none = stateError(dir, err)
			}
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
	if len(found) == 0 {
		return nil, none
	}
	return found, nil
}

func resetRefused(err error) error {
	if errors.Is(err, localcache.ErrLocked) {
		return exitWith(exitFailure, "%w: stop it first; it was not changed", err)
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
			lost = append(lost, "what is in "+was.Dir+", which cannot be read")
		default:
			lost = append(lost, fmt.Sprintf("the identity in %s, with worker %d of cluster %s", was.Dir, was.Record.Worker, orDash(clean(was.Record.Cluster))))
		}
	}
	if c.Bool("yes") || len(lost) == 0 {
		return nil
	}
	what := strings.Join(lost, "; ")
	in, ok := c.App.Reader.(*os.File)
	if !ok || !isatty.IsTerminal(in.Fd()) {
		return usageError("to be given up for good: %s. Nothing was changed; if it is what you want, add --yes", what)
	}
	typed, err := question(c, in, fmt.Sprintf("To be given up for good: %s.\nType reset to go on: ", what))
	if err == nil && typed != "reset" {
		return exitWith(exitFailure, "that was not \"reset\"; nothing was changed")
	}
	return err
}

func resetLines(dir string, was stateReport, backup string, now time.Time) []string {
	if backup == "" {
		return []string{"nothing in " + was.Dir + " would be resumed: a node that starts there is a new one; nothing was changed"}
	}
	lines := []string{
		"nothing in " + was.Dir + " will be resumed any more: a node that starts there is a new one",
		"a copy of what there was, for people: " + backup,
	}
	r := was.Record
	if r == nil {
		return append(lines, "it could not be read, so it is not known which worker it was for: flaked status shows it as stopped or detached until its lease ends")
	}
	state := "detached"
	if r.Stopped {
		state = "stopped"
	}
	lines = append(lines, fmt.Sprintf("worker %d of cluster %s stays its own in ZooKeeper, %s, until its lease ends: %s or a little later",
		r.Worker, orDash(clean(r.Cluster)), state, instant(r.HMs, now)))
	if len(was.Changed) > 0 {
		return append(lines, "this was a copy of another node's state: leave the worker alone, the other may be running")
	}
	if was.Damaged {
		return append(lines, "the state was damaged, so it is not known how far it had come: leave the worker alone until then")
	}
	return append(lines, fmt.Sprintf("to free it before that, if there is no other copy of the state: flaked workers release %d --lower-bound --cluster %s --state-dir %s",
		r.Worker, orDash(clean(r.Cluster)), dir))
}

// givenStateDir returns --state-dir as an absolute path.
func givenStateDir(c *cli.Context) (string, error) {
	dir := c.String("state-dir")
	if dir == "" {
		return "", usageError("which directory? give --state-dir: there is no home to look in")
	}
	return filepath.Abs(dir)
}

// stateError adds what to do to the error of reading a state directory.
func stateError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitWith(exitFailure, "no node has left its state in %s: --state-dir (FLAKED_STATE_DIR) names another directory", dir)
	case errors.Is(err, fs.ErrPermission):
		return exitWith(exitFailure, "%w: call it as the user that the node runs as", err)
	}
	return err
}
