package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/localcache"
)

func stateCommand() *cli.Command {
	return &cli.Command{
		Name:  "state",
		Usage: "show a node's local record",
		Subcommands: []*cli.Command{{
			Name:  "show",
			Usage: "print the contents of a state directory",
			Description: `Prints the content of a node's state directory: its worker, the bounds of the IDs that
it may issue, and whether a node that starts here would resume it. It changes nothing,
and may run beside the node. Exits with 1 if there is no state, and with 4 if the
state is damaged.

Examples:
  flaked state show
  flaked state show --state-dir /var/lib/flaked -o json`,
			Flags:  []cli.Flag{stateDirFlag(), outputFlag()},
			Action: stateShow,
		}},
	}
}

// stateReport is the JSON of `flaked state show`. Times are Unix milliseconds. Record is null
// if no record can be trusted.
type stateReport struct {
	Dir    string `json:"dir"`
	Status string `json:"status"` // record, released, empty or corrupt
	// Locked is true if a running node uses the directory, as far as can be seen from here.
	Locked bool `json:"locked"`
	// Damaged is true if one of the record's two copies is lost. Reason says how.
	Damaged bool   `json:"damaged"`
	Reason  string `json:"reason"`
	// Changed are the parts of the fingerprint that differ because the file was copied or
	// moved. It is empty for the original file.
	Changed []string     `json:"fingerprint_changed"`
	Record  *stateRecord `json:"record"`
}

type stateRecord struct {
	Cluster         string `json:"cluster"`
	ClusterUUID     string `json:"cluster_uuid"`
	Layout          string `json:"layout"`
	Datacenter      int64  `json:"datacenter"`
	Node            string `json:"node"`
	Worker          int    `json:"worker"`
	Term            int64  `json:"term"`
	Pending         bool   `json:"grant_pending"`
	Confirmed       bool   `json:"confirmed"`
	Stopped         bool   `json:"stopped"`
	FloorMs         int64  `json:"floor_ms"`
	ReservedUntilMs int64  `json:"reserved_until_ms"`
	LeaseUntilMs    int64  `json:"lease_until_ms"`
	ServedMs        int64  `json:"served_ms"`
	Generation      uint64 `json:"generation"`
}

func stateShow(c *cli.Context) error {
	dir, err := givenStateDir(c)
	if err != nil {
		return err
	}
	loaded, locked, err := localcache.Inspect(dir)
	if err != nil {
		return stateError(dir, err)
	}
	r, err := reportState(dir, loaded, locked)
	if err != nil {
		return err
	}
	switch err := show(c, r, stateRows(r, time.Now()).print); {
	case err != nil:
		return err
	case loaded.Status == localcache.StatusCorrupt:
		return exitWith(exitDegraded, "the state is lost: %s. A node started here will be a new one", loaded.Reason)
	case loaded.Damaged:
		return exitWith(exitDegraded, "one copy of the record is lost: %s. The other copy is valid", loaded.Reason)
	}
	return nil
}

func reportState(dir string, l localcache.Loaded, locked bool) (stateReport, error) {
	r := stateReport{
		Dir: dir, Status: l.Status.String(), Locked: locked, Damaged: l.Damaged, Reason: l.Reason,
		Changed: append([]string{}, l.Changed...),
	}
	if l.Status != localcache.StatusRecord && l.Status != localcache.StatusReleased {
		return r, nil
	}
	rec, err := node.DecodeRecord(l.Record)
	if err != nil {
		return r, err
	}
	cl, claim := rec.Cluster, rec.Claim
	r.Record = &stateRecord{
		Cluster: rec.ClusterName, ClusterUUID: cl.UUID, Layout: cl.Layout, Datacenter: cl.Datacenter,
		Node: claim.Node, Worker: claim.Worker, Term: claim.Term, Pending: claim.PendingNonce != "",
		Confirmed: claim.Confirmed, Stopped: rec.Stopped, FloorMs: claim.Floor,
		ReservedUntilMs: claim.ReservedUntil, LeaseUntilMs: claim.LeaseUntil,
		ServedMs: rec.ServedMs, Generation: claim.Generation,
	}
	return r, nil
}

func stateRows(r stateReport, now time.Time) textTable {
	status := map[string]string{
		"record":   "a node's record",
		"released": "released: the node released its worker, and no node resumes this state",
		"empty":    "empty: nothing has been written yet",
		"corrupt":  "corrupt: " + view.Clean(r.Reason),
	}[r.Status]
	rows := textTable{
		{"directory", r.Dir},
		{"status", status},
		{"in use", yesNo(r.Locked, "by a running node", "by no node that can be seen from here")},
	}
	if r.Damaged {
		rows.add("damaged", view.Clean(r.Reason))
	}
	rec := r.Record
	if rec == nil {
		return rows
	}
	fingerprint := "matches this machine and file"
	if len(r.Changed) > 0 {
		fingerprint = "differs (" + strings.Join(r.Changed, ", ") + "): copied or moved here, so a node will " +
			"register as a new one"
	}
	term := strconv.FormatInt(rec.Term, 10)
	if rec.Pending {
		term += ", and the next one requested"
	}
	return append(rows, textTable{
		{"fingerprint", fingerprint},
		{"cluster", fmt.Sprintf("%s (%s)", printable(rec.Cluster), printable(rec.ClusterUUID))},
		{"layout", printable(rec.Layout)},
		{"node", printable(rec.Node)},
		{"worker", strconv.Itoa(rec.Worker)},
		{"term", term},
		{"confirmed", yesNo(rec.Confirmed, "it may start without ZooKeeper", "it may not start without ZooKeeper")},
		{"stopped", yesNo(rec.Stopped, "cleanly: the reserved bound is exact",
			"it runs, or ended without a clean stop")},
		{"floor", view.Instant(rec.FloorMs, now)},
		{"reserved bound", view.Instant(rec.ReservedUntilMs, now)},
		{"lease bound", view.Instant(rec.LeaseUntilMs, now)},
		{"has served for", view.Brief(rec.ServedMs)},
		{"generation", strconv.FormatUint(rec.Generation, 10)},
	}...)
}

func yesNo(b bool, yes, no string) string {
	if b {
		return "yes, " + yes
	}
	return "no, " + no
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
		return exitWith(exitFailure, "--state-dir %s: a part of the path is not a directory. Correct the path "+
			"(FLAKED_STATE_DIR)", dir)
	}
	return err
}
