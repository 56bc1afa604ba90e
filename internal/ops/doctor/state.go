package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/localcache"
)

// stateDir is a state directory and its content.
type stateDir struct {
	path   string
	look   localcache.Examination
	err    error // of look
	loaded localcache.Loaded
	// bad is the error of reading the record, nil if there is no record.
	bad    error
	record node.LocalRecord
}

// belongs reports whether the directory holds a record that a node started here would resume.
func (d stateDir) belongs() bool {
	return d.bad == nil && d.loaded.Status == localcache.StatusRecord && len(d.loaded.Changed) == 0
}

// examine examines the state directory, for as long as a group of checks may take.
func examine(ctx context.Context, cfg Config) stateDir {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	d, err := bounded(ctx, func() (stateDir, error) { return examineDir(cfg.StateDir), nil })
	if err != nil {
		return stateDir{path: cfg.StateDir, err: err}
	}
	return d
}

func examineDir(path string) stateDir {
	d := stateDir{path: path}
	if d.look, d.err = localcache.Examine(path); d.err != nil || d.look.Missing {
		return d
	}
	d.loaded, d.bad = d.look.ReadState()
	if d.bad == nil {
		d.record, d.bad = node.DecodeRecord(d.loaded.Record)
	}
	if errors.Is(d.bad, fs.ErrNotExist) {
		d.bad = nil
	}
	return d
}

func checkDir(ctx context.Context, cfg Config, d stateDir) []Finding {
	if d.err != nil {
		return []Finding{unreadable(d)}
	}
	found := []Finding{judgeDir(d, cfg), judgeFilesystem(d.path, d.look, cfg.ReleaseOnExit), judgeSpace(d.path, d.look)}
	took, err := bounded(ctx, func() ([]time.Duration, error) { return d.look.TrySync(syncs) })
	return append(found, judgeSyncs(d, took, err))
}

func unreadable(d stateDir) Finding {
	f := Finding{Check: "state-dir", Level: Fail, Text: fmt.Sprintf("%s: %v", d.path, d.err),
		Advice: "Check --state-dir"}
	switch {
	case errors.Is(d.err, errSlow):
		f.Text, f.Advice = d.path+" does not answer", health.AdviceDisk
	case errors.Is(d.err, fs.ErrPermission):
		f.Advice = "Run doctor as the node's user"
	}
	return f
}

// judgeDir judges whether a node can use the directory, and which worker the node would resume.
func judgeDir(d stateDir, cfg Config) Finding {
	f := Finding{Check: "state-dir", Level: OK}
	switch {
	case d.look.Refused != nil && os.Geteuid() == 0 && d.look.Owner != 0 &&
		errors.Is(d.look.Refused, localcache.ErrUnsafeDir):
		f.Level, f.Text = Warn, fmt.Sprintf("%s belongs to user %d, so a node that runs as root could not use it",
			d.path, d.look.Owner)
		f.Advice = fmt.Sprintf("Run doctor as that user (sudo -u '#%d')", d.look.Owner)
	case d.look.Refused != nil:
		f.Level, f.Text, f.Advice = Fail, d.look.Refused.Error(), "See the help of --state-dir"
	case d.look.Missing:
		f.Text = d.path + " does not exist yet: a new node creates it"
	case d.bad != nil:
		f.Level, f.Text, f.Advice = Fail, d.bad.Error(), "Another release wrote it, or it is not a state directory"
	case d.loaded.Status == localcache.StatusCorrupt:
		f.Level, f.Text = Warn, fmt.Sprintf("%s: the state is lost: %s", d.path, d.loaded.Reason)
		f.Advice = "A node started here will be a new one. Check the disk"
	case d.loaded.Damaged:
		f.Level, f.Text = Warn, fmt.Sprintf("%s: one copy of the record is lost, and the other copy is valid: %s",
			d.path, d.loaded.Reason)
		f.Advice = "Check the disk"
	case d.loaded.Status == localcache.StatusRecord && len(d.loaded.Changed) > 0:
		f.Level, f.Text = Warn, fmt.Sprintf("%s was copied or moved here (%v differ): a node started here will be a "+
			"new one", d.path, d.loaded.Changed)
		f.Advice = "Start with an empty directory, and see docs/operate.md"
	case d.belongs() && d.record.ClusterName != cfg.ZK.Cluster:
		f.Level, f.Text = Fail, fmt.Sprintf("%s belongs to the cluster %q, and --cluster is %q", d.path,
			d.record.ClusterName, cfg.ZK.Cluster)
		f.Advice = health.AdviceOtherCluster
	case d.belongs():
		f.Text = fmt.Sprintf("%s holds worker %d of %s", d.path, d.record.Claim.Worker, d.record.ClusterName)
	default:
		f.Text = d.path + " holds no state of a node: a node started here will be a new one"
	}
	switch {
	case f.Level != OK:
	case d.look.Locked && d.look.LockedBy != 0:
		f.Text += fmt.Sprintf(". Process %d uses it", d.look.LockedBy)
	case d.look.Locked:
		f.Text += ". A running node uses it"
	default:
		f.Text += ". No running node that is visible from here uses it"
	}
	return f
}

// judgeFilesystem judges whether the state lasts as long as it must. localcache itself refuses
// filesystems where a sync may lie or where two machines share a lock.
func judgeFilesystem(path string, x localcache.Examination, releases bool) Finding {
	f := Finding{Check: "filesystem", Level: OK, Text: fmt.Sprintf("%s is on %s", path, x.Filesystem)}
	ends := map[string]string{"tmpfs": "in memory: the state is lost when the machine stops",
		"ramfs": "in memory: the state is lost when the machine stops", "overlay": "most likely a container's own: " +
			"the state is lost with the container"}[x.Filesystem]
	switch {
	case ends == "" && x.CloneUnseen && !releases:
		f.Level, f.Text = Warn, f.Text+", on a machine with neither /etc/machine-id nor a readable product UUID"
		f.Advice = "Never clone its volume, because flaked could not tell a clone from it, or give each machine or " +
			"pod its own machine-id"
	case ends == "":
	case releases:
		f.Text += ", " + ends + ", which is acceptable with --release-on-exit"
	default:
		f.Level, f.Text = Warn, f.Text+", "+ends
		f.Advice = "Put --state-dir on a lasting disk, or add --release-on-exit. Otherwise each restart uses up a " +
			"worker for a day"
	}
	return f
}

// The free space that a state directory should have. The record's file takes 8 KiB, once.
const (
	leastBytes  = 1 << 20
	scarceBytes = 100 << 20
)

func judgeSpace(path string, x localcache.Examination) Finding {
	f := Finding{Check: "space", Level: OK, Text: fmt.Sprintf("%d MiB are free for %s", x.FreeBytes>>20, path)}
	fewInodes := x.Inodes > 0 && x.FreeInodes < 100
	if fewInodes {
		f.Text = fmt.Sprintf("%d inodes are free for %s", x.FreeInodes, path)
	}
	switch {
	case x.FreeBytes < leastBytes, fewInodes && x.FreeInodes == 0:
		f.Level, f.Advice = Fail, health.AdviceDisk
	case x.FreeBytes < scarceBytes, fewInodes:
		f.Level, f.Advice = Warn, health.AdviceDisk
	}
	return f
}

const (
	syncs = 10
	// A node pushes its reserved bound every second, 3 s ahead by default. A write that takes
	// longer than a second counts as a stalled disk.
	slowSync    = 100 * time.Millisecond
	stalledSync = time.Second
)

func judgeSyncs(d stateDir, took []time.Duration, err error) Finding {
	f := Finding{Check: "durability", Level: Fail}
	switch {
	case errors.Is(err, errSlow):
		f.Text, f.Advice = "a write to "+d.path+" is not synced in time", health.AdviceDisk
		return f
	case errors.Is(err, fs.ErrPermission) && d.look.Missing:
		f.Text = fmt.Sprintf("%s does not exist, and this user may not create it", d.path)
		f.Advice = fmt.Sprintf("Run doctor as the node's user. If you did, create the directory as root: install -d "+
			"-m 700 -o %d %s", os.Geteuid(), d.path)
		return f
	case errors.Is(err, fs.ErrPermission):
		f.Text, f.Advice = err.Error(), "Run doctor as the node's user"
		return f
	case err != nil:
		f.Text, f.Advice = err.Error(), health.AdviceDisk
		return f
	}
	slices.Sort(took)
	middle, worst := took[len(took)/2], took[len(took)-1]
	f.Level, f.Text = OK, fmt.Sprintf("a write to %s and its sync take %s, %s at worst", d.path, round(middle),
		round(worst))
	switch {
	case worst >= stalledSync:
		f.Level, f.Advice = Fail, "Use a faster disk, or one with less load"
	case middle >= slowSync:
		f.Level, f.Advice = Warn, "Use a faster disk, or one with less load"
	}
	return f
}
