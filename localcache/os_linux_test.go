package localcache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The filesystem fills up while a StateFile is open. Save must go on working, and a new state file must be refused.
func TestSaveOnFullExt4(t *testing.T) {
	needRoot(t)
	mount := t.TempDir()
	m := &volume{t: t, file: filepath.Join(t.TempDir(), "image"), dir: mount}
	do(t, os.WriteFile(m.file, make([]byte, 4<<20), 0o600))
	run(t, "mkfs.ext4", "-q", "-F", m.file)
	m.mount()
	dir := filepath.Join(mount, "state")
	c := mustOpen(t, dir)
	fill, err := os.Create(filepath.Join(mount, "fill"))
	do(t, err)
	defer fill.Close()
	for size := 4096; size > 0; {
		if _, err := fill.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else {
			do(t, err)
		}
	}
	do(t, fill.Sync())
	if err := os.WriteFile(filepath.Join(mount, "more"), make([]byte, 4096), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("not full: %v", err)
	}
	r := sample()
	for range 50 {
		r.ReservedUntil += 3000
		mustSave(t, c, r)
	}
	do(t, c.Invalidate())
	r = r.with(func(m *memory) { m.Node = "n-2" })
	mustSave(t, c, r)
	do(t, c.Close())
	if l := mustOpen(t, dir).Load(); l.Status != StatusRecord || l.Damaged ||
		l.Record.ReservedUntil != r.ReservedUntil || l.Changed != nil {
		t.Errorf("%+v", l)
	}
	if _, err := Open(filepath.Join(mount, "another")); err == nil {
		t.Error("a new state file was preallocated on a full disk")
	} else if _, found := os.Lstat(filepath.Join(mount, "another", stateName)); found == nil {
		t.Errorf("%v, and the file was left", err)
	}
}

func TestFindLock(t *testing.T) {
	const fdinfo = "pos:\t0\nflags:\t02100002\nmnt_id:\t29\nino:\t56789\n"
	const mounts = "28 1 0:26 / /proc rw - proc proc rw\n29 1 254:16 / / rw,relatime shared:1 - ext4 /dev/vdb rw\n"
	file := lockedFile(fdinfo, mounts)
	if file != "fe:10:56789" {
		t.Fatalf("file %q", file)
	}
	for _, bad := range []string{"", "mnt_id:\t29\n", "mnt_id:\t99\nino:\t56789\n"} {
		if got := lockedFile(bad, mounts); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
	tests := []struct {
		name, locks string
		pid         int
		held        bool
	}{
		{"none", "", 0, false},
		{"ours", "1: POSIX  ADVISORY  WRITE 11 fe:10:56789 0 EOF\n2: FLOCK  ADVISORY  WRITE 1234 fe:10:56789 0 EOF\n",
			1234, true},
		{"other file", "1: FLOCK  ADVISORY  WRITE 1234 fe:10:5678 0 EOF\n", 0, false},
		{"waiter only", "1: -> FLOCK  ADVISORY  WRITE 1234 fe:10:56789 0 EOF\n", 0, false},
		{"holder unknown", "1: FLOCK  ADVISORY  WRITE -1 fe:10:56789 0 EOF\n", 0, true},
		{"cut", "1: FLOCK ADVISORY", 0, false},
	}
	for _, tt := range tests {
		if pid, held := findLock(tt.locks, file); pid != tt.pid || held != tt.held {
			t.Errorf("%s: %d, %v", tt.name, pid, held)
		}
	}
}

func TestNetworkFilesystemHasItsName(t *testing.T) {
	if got := filesystemName(unix.Statfs_t{Type: unix.NFS_SUPER_MAGIC}); got != "NFS" {
		t.Error(got)
	}
}

// A bind mount shows which directory of its filesystem it is: so a pod's emptyDir shows itself.
func TestMountedRoot(t *testing.T) {
	needRoot(t)
	if os.Getenv("FLAKED_TEST_EMULATOR") != "" {
		t.Skip("qemu's statx hides the number of a mount")
	}
	volume := filepath.Join(t.TempDir(), "kubernetes.io~empty-dir", "state")
	at := t.TempDir()
	do(t, os.MkdirAll(volume, 0o700), unix.Mount(volume, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { do(t, unix.Unmount(at, unix.MNT_DETACH)) })
	for dir, want := range map[string]bool{at: true, t.TempDir(): false} {
		f, err := os.Open(dir)
		do(t, err)
		if root := mountedRoot(f); strings.Contains(root, "/kubernetes.io~empty-dir/") != want || root == "" {
			t.Errorf("%s: %q", dir, root)
		}
		f.Close()
	}
}
