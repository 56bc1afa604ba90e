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
	dir := func(d stateDir) Finding { return judgeDir(d, Config{ZK: store.ZKConfig{Cluster: "c"}}) }
	checkRows(t, []row{
		{"none", dir(stateDir{path: "/s", look: localcache.Examination{Missing: true}}), OK, "does not exist yet"},
		{"empty", dir(stateDir{path: "/s"}), OK, "will be a new one"},
		{"a worker", dir(holds(func(*stateDir) {})), OK, "/s holds worker 7 of c. No running node"},
		{"in use", dir(holds(func(d *stateDir) { d.look.Locked, d.look.LockedBy = true, 42 })), OK, "Process 42 uses it"},
		{"in use by whom", dir(holds(func(d *stateDir) { d.look.Locked = true })), OK, "A running node uses it"},
		{"of another cluster", dir(holds(func(d *stateDir) { d.record.ClusterName = "d" })), Fail,
			`belongs to the cluster "d", and --cluster is "c"`},
		{"copied", dir(holds(func(d *stateDir) { d.loaded.Changed = []string{"inode"} })), Warn, "copied or moved"},
		{"damaged", dir(holds(func(d *stateDir) { d.loaded.Damaged = true })), Warn, "one copy of the record is lost, and"},
		{"lost", dir(stateDir{path: "/s", loaded: localcache.Loaded{Status: localcache.StatusCorrupt, Reason: "torn"}}),
			Warn, "torn"},
		{"of another release", dir(stateDir{path: "/s", bad: localcache.ErrOtherFormat}), Fail, "another format"},
		{"refused", dir(stateDir{path: "/s", look: localcache.Examination{Refused: localcache.ErrFilesystem}}), Fail,
			"filesystem refused"},
		{"stalled", unreadable(stateDir{path: "/s", err: errSlow}), Fail, "/s does not answer"},
		{"another user's", unreadable(stateDir{path: "/s", err: fs.ErrPermission}), Fail, "as the node's user"},
		{"a bound ahead", judgeMemory(holds(func(*stateDir) {}), 45_000), OK, "not behind"},
		{"the clock went back", judgeMemory(holds(func(*stateDir) {}), 20_000), Fail, "30s behind what worker 7"},
		{"given back", judgeMemory(holds(func(d *stateDir) { d.loaded.Status = localcache.StatusReleased }), 20_000),
			OK, ""},
	})
}

func TestDisk(t *testing.T) {
	on := func(fs string, releases bool) Finding {
		return judgeFilesystem("/s", localcache.Examination{Filesystem: fs}, releases)
	}
	nameless := localcache.Examination{Filesystem: "ext4", CloneUnseen: true}
	room := func(free, inodes, freeInodes uint64) Finding {
		return judgeSpace("/s", localcache.Examination{FreeBytes: free, Inodes: inodes, FreeInodes: freeInodes})
	}
	took := func(err error, times ...time.Duration) Finding { return judgeSyncs(stateDir{path: "/s"}, times, err) }
	missing := stateDir{path: "/s", look: localcache.Examination{Missing: true}}
	checkRows(t, []row{
		{"lasting", on("ext4", false), OK, "/s is on ext4"},
		{"in memory", on("tmpfs", false), Warn, "is lost when the machine stops"},
		{"a container's", on("overlay", false), Warn, "a container's own"},
		{"a container's that releases", on("overlay", true), OK,
			"is lost with the container, which is acceptable with --release-on-exit"},
		{"a clone would pass", judgeFilesystem("/s", nameless, false), Warn,
			"neither /etc/machine-id nor a readable product UUID"},
		{"a clone has nothing", judgeFilesystem("/s", nameless, true), OK, "/s is on ext4"},

		{"room", room(3<<30, 2000, 1000), OK, "3072 MiB"},
		{"little room", room(50<<20, 2000, 1000), Warn, "50 MiB"},
		{"no room", room(4<<10, 2000, 1000), Fail, "0 MiB"},
		{"no inodes", room(3<<30, 2000, 0), Fail, "0 inodes"},
		{"inodes are not counted", room(3<<30, 0, 0), OK, "3072 MiB are free"},

		{"as usual", took(nil, 3e6, 1e6, 2e6), OK, "take 2ms, 3ms at worst"},
		{"slow", took(nil, 2e8), Warn, "Use a faster disk"},
		{"stalling", took(nil, 1e6, 1e6, 2e9), Fail, "2s at worst"},
		{"stalled", took(errSlow), Fail, "not synced in time"},
		{"full", took(errors.New("no space left")), Fail, "no space left"},
		{"not allowed", took(fs.ErrPermission), Fail, "as the node's user"},
		{"not allowed to create it", judgeSyncs(missing, nil, fs.ErrPermission), Fail, "install -d -m 700 -o"},
	})
}

func TestKernelClock(t *testing.T) {
	kept := kernelState{Synchronised: true, MaxError: 3 * time.Millisecond, EstError: 12 * time.Microsecond}
	checkRows(t, []row{
		{"kept", judgeKernel(kept, nil), OK, "synchronised. The kernel says: at most 3ms off, 12µs by estimate"},
		{"far off", judgeKernel(kernelState{Synchronised: true, MaxError: 2 * time.Second}, nil), Warn, "chronyc sources"},
		{"by nobody", judgeKernel(kernelState{}, nil), Warn, "Install chrony"},
		{"forbidden", judgeKernel(kernelState{}, fs.ErrPermission), Warn, "the host sets the clock"},
		{"not Linux", judgeKernel(kernelState{}, errors.ErrUnsupported), Skip, "only the kernel of Linux"},
	})
}
