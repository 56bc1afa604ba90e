package doctor

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
)

// holds returns a directory with the record of worker 7, with a change.
func holds(change func(*stateDir)) stateDir {
	d := stateDir{path: "/s", loaded: localcache.Loaded{Status: localcache.StatusRecord}}
	d.record.ClusterName, d.record.Claim.Worker, d.record.Claim.ReservedUntil = "c", 7, 50_000
	change(&d)
	return d
}

func TestStateDirectory(t *testing.T) {
	for _, tc := range []struct {
		name  string
		dir   stateDir
		level Level
		text  string
	}{
		{"none", stateDir{path: "/s", look: localcache.Examination{Missing: true}}, OK, "does not exist yet"},
		{"empty", stateDir{path: "/s"}, OK, "will be a new one"},
		{"a worker", holds(func(*stateDir) {}), OK, "/s holds worker 7 of c. No running node"},
		{"in use", holds(func(d *stateDir) { d.look.Locked, d.look.LockedBy = true, 42 }), OK, "Process 42 uses it"},
		{"in use by whom", holds(func(d *stateDir) { d.look.Locked = true }), OK, "A running node uses it"},
		{"of another cluster", holds(func(d *stateDir) { d.record.ClusterName = "d" }), Fail,
			`belongs to the cluster "d", and --cluster is "c"`},
		{"copied", holds(func(d *stateDir) { d.loaded.Changed = []string{"inode"} }), Warn, "copied or moved"},
		{"damaged", holds(func(d *stateDir) { d.loaded.Damaged = true }), Warn, "one copy of the record is lost, and"},
		{"lost", stateDir{path: "/s", loaded: localcache.Loaded{Status: localcache.StatusCorrupt, Reason: "torn"}},
			Warn, "torn"},
		{"of another release", stateDir{path: "/s", bad: localcache.ErrOtherFormat}, Fail, "another format"},
		{"refused", stateDir{path: "/s", look: localcache.Examination{Refused: localcache.ErrFilesystem}}, Fail,
			"filesystem refused"},
	} {
		judgeDir(tc.dir, Config{ZK: store.ZKConfig{Cluster: "c"}}).wants(t, tc.name, tc.level, tc.text)
	}
	unreadable(stateDir{path: "/s", err: errSlow}).wants(t, "stalled", Fail, "/s does not answer")
	unreadable(stateDir{path: "/s", err: fs.ErrPermission}).wants(t, "another user's", Fail, "as the node's user")
}

func TestFilesystem(t *testing.T) {
	for _, tc := range []struct {
		fs       string
		releases bool
		level    Level
		text     string
	}{
		{"ext4", false, OK, "/s is on ext4"},
		{"tmpfs", false, Warn, "is lost when the machine stops"},
		{"overlay", false, Warn, "a container's own"},
		{"overlay", true, OK, "is lost with the container, which is acceptable with --release-on-exit"},
	} {
		judgeFilesystem("/s", localcache.Examination{Filesystem: tc.fs, TellsMachines: true}, tc.releases).wants(t,
			tc.fs, tc.level, tc.text)
	}
	judgeFilesystem("/s", localcache.Examination{Filesystem: "ext4"}, false).wants(t, "a clone would pass", Warn,
		"neither /etc/machine-id nor a readable product UUID")
	judgeFilesystem("/s", localcache.Examination{Filesystem: "ext4"}, true).wants(t, "a clone has nothing", OK,
		"/s is on ext4")
}

func TestSpace(t *testing.T) {
	for _, tc := range []struct {
		name         string
		free, inodes uint64
		level        Level
		text         string
	}{
		{"room", 3 << 30, 1000, OK, "3072 MiB"},
		{"little", 50 << 20, 1000, Warn, "50 MiB"},
		{"none", 4 << 10, 1000, Fail, "0 MiB"},
		{"no inodes", 3 << 30, 0, Fail, "0 inodes"},
	} {
		judgeSpace("/s", localcache.Examination{FreeBytes: tc.free, FreeInodes: tc.inodes, Inodes: 2000}).wants(t,
			tc.name, tc.level, tc.text)
	}
	judgeSpace("/s", localcache.Examination{FreeBytes: 3 << 30}).wants(t, "inodes are not counted", OK,
		"3072 MiB are free")
}

func TestSyncs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		took  []time.Duration
		err   error
		level Level
		text  string
	}{
		{"as usual", []time.Duration{3e6, 1e6, 2e6}, nil, OK, "take 2ms, 3ms at worst"},
		{"slow", []time.Duration{2e8}, nil, Warn, "Use a faster disk"},
		{"stalling", []time.Duration{1e6, 1e6, 2e9}, nil, Fail, "2s at worst"},
		{"stalled", nil, errSlow, Fail, "not synced in time"},
		{"full", nil, errors.New("no space left"), Fail, "no space left"},
		{"not allowed", nil, fs.ErrPermission, Fail, "as the node's user"},
	} {
		judgeSyncs("/s", tc.took, tc.err).wants(t, tc.name, tc.level, tc.text)
	}
}

func TestClockBehindTheState(t *testing.T) {
	judgeMemory(holds(func(*stateDir) {}), 45_000).wants(t, "a bound ahead", OK, "not behind")
	judgeMemory(holds(func(*stateDir) {}), 20_000).wants(t, "the clock went back", Fail, "30s behind what worker 7")
	judgeMemory(holds(func(d *stateDir) { d.loaded.Status = localcache.StatusReleased }), 20_000).wants(t,
		"given back", OK, "")
}

func TestClock(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kernel kernelState
		err    error
		level  Level
		text   string
	}{
		{"kept", kernelState{Synchronised: true, MaxError: 3 * time.Millisecond,
			EstError: 12 * time.Microsecond}, nil, OK, "synchronised. The kernel says: at most 3ms off, 12µs by " +
			"estimate"},
		{"far off", kernelState{Synchronised: true, MaxError: 2 * time.Second}, nil, Warn, "chronyc sources"},
		{"by nobody", kernelState{}, nil, Warn, "Install chrony"},
		{"forbidden", kernelState{}, fs.ErrPermission, Warn, "the host sets the clock"},
		{"not Linux", kernelState{}, errors.ErrUnsupported, Skip, "only the kernel of Linux"},
	} {
		judgeKernel(tc.kernel, tc.err).wants(t, tc.name, tc.level, tc.text)
	}
}
