//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childDir is the environment variable that turns the test binary into a second flaked. That process opens the
// directory, prints the result, and keeps the directory open until its stdin is closed.
const childDir = "LOCALCACHE_TEST_OPEN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		_, err := Open(dir)
		fmt.Println(errors.Is(err, ErrLocked), err)
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func mustOpen(t testing.TB, dir string) *StateFile {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestOpenMakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	c := mustOpen(t, dir+"/")
	fi, err := os.Stat(dir)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	fi, err = os.Stat(filepath.Join(dir, stateName))
	if err != nil || fi.Mode() != 0o600 || fi.Size() != FileSize {
		t.Errorf("%v, %v", fi, err)
	}
	if l := c.Load(); l.Status != StatusEmpty {
		t.Errorf("%+v", l)
	}
	g := mustSave(t, c, sample())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, dir).Load()
	if l.Status != StatusRecord || l.Damaged || l.Changed != nil || l.Record.Generation != g ||
		l.Record.ReservedUntil != sample().ReservedUntil {
		t.Errorf("%+v", l)
	}
	fp := l.Record.Fingerprint
	if fp.Inode == "" || fp.Filesystem == "" || fp == (Fingerprint{}) {
		t.Errorf("fingerprint %+v", fp)
	}
	t.Logf("fingerprint here: %+v", fp)
}

func TestOpenRefusesDirectories(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, dir string)
		want error
		says string
	}{
		{"symlink", func(t *testing.T, dir string) {
			to := dir + "-real"
			do(t, os.Mkdir(to, 0o700), os.Symlink(to, dir))
		}, ErrUnsafeDir, "symbolic link"},
		{"dangling symlink", func(t *testing.T, dir string) { do(t, os.Symlink("nowhere", dir)) }, ErrUnsafeDir,
			"symbolic link"},
		{"file", func(t *testing.T, dir string) { do(t, os.WriteFile(dir, nil, 0o600)) }, ErrUnsafeDir,
			"not a directory"},
		{"open, with files of others", func(t *testing.T, dir string) {
			do(t, os.Mkdir(dir, 0o700), os.Chmod(dir, 0o750), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600))
		}, ErrUnsafeDir, "chmod 700 "},
		{"open, with a file of another user", func(t *testing.T, dir string) {
			needRoot(t)
			f := filepath.Join(dir, "other")
			do(t, os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777), os.WriteFile(f, nil, 0o600), os.Chown(f, 12345, -1),
				os.WriteFile(filepath.Join(dir, stateName), nil, 0o600))
		}, ErrUnsafeDir, "chmod 700 "},
		{"sticky, as /tmp", func(t *testing.T, dir string) {
			do(t, os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|fs.ModeSticky))
		}, ErrUnsafeDir, "chmod 700 "},
		{"owner", func(t *testing.T, dir string) {
			needRoot(t)
			do(t, os.Mkdir(dir, 0o700), os.Chown(dir, 12345, -1))
		}, ErrUnsafeDir, "belongs to user 12345"},
		{"state is a symlink", func(t *testing.T, dir string) {
			do(t, os.Mkdir(dir, 0o700), os.WriteFile(dir+"-real", nil, 0o600),
				os.Symlink(dir+"-real", filepath.Join(dir, stateName)))
		}, ErrUnsafeFile, "symbolic link"},
		{"state is a directory", func(t *testing.T, dir string) {
			do(t, os.MkdirAll(filepath.Join(dir, stateName), 0o700))
		}, nil, "is a directory"},
		{"state has two names", func(t *testing.T, dir string) {
			f := filepath.Join(dir, stateName)
			do(t, os.Mkdir(dir, 0o700), os.WriteFile(f, nil, 0o600), os.Link(f, dir+"-other"))
		}, ErrUnsafeFile, "2 hard links"},
		{"state is a pipe", func(t *testing.T, dir string) {
			do(t, os.Mkdir(dir, 0o700), unix.Mkfifo(filepath.Join(dir, stateName), 0o600))
		}, ErrUnsafeFile, "not a regular file"},
		{"state of another owner", func(t *testing.T, dir string) {
			needRoot(t)
			f := filepath.Join(dir, stateName)
			do(t, os.Mkdir(dir, 0o700), os.WriteFile(f, nil, 0o600), os.Chown(f, 12345, -1))
		}, ErrUnsafeFile, "belongs to user 12345"},
		{"parent is a file", func(t *testing.T, dir string) {
			do(t, os.RemoveAll(filepath.Dir(dir)), os.WriteFile(filepath.Dir(dir), nil, 0o600))
		}, nil, "not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			tt.make(t, dir)
			c, err := Open(dir)
			if err == nil {
				c.Close()
				t.Fatal("was opened")
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Open(""); !errors.Is(err, ErrUnsafeDir) {
		t.Errorf("no path: %v", err)
	}
}

// A power cut could otherwise lose a directory above the state directory, and all that is in it.
func TestEachDirectoryThatOpenCreatesIsSynced(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b", "state")
	var synced []string
	create := func() {
		t.Helper()
		do(t, makeDir(dir, 0o700, func(dir string) error { synced = append(synced, dir); return syncDir(dir) }))
	}
	create()
	if want := []string{base, filepath.Join(base, "a"), filepath.Join(base, "a", "b")}; !slices.Equal(synced, want) {
		t.Errorf("synced %v, want %v", synced, want)
	}
	synced = nil
	create()
	if len(synced) != 0 {
		t.Errorf("synced %v of a directory that exists", synced)
	}
	mustOpen(t, dir)
}

// A kubelet that sets fsGroup opens a volume to the group, at each start of a pod.
func TestOpenTakesAwayTheRightsOfOthers(t *testing.T) {
	for _, mode := range []fs.FileMode{0o701, 0o750, 0o755, 0o770 | fs.ModeSetgid, 0o777} {
		dir := filepath.Join(t.TempDir(), "state")
		do(t, os.Mkdir(dir, 0o700))
		for _, first := range []bool{true, false} { // an empty directory, and one with a state file
			do(t, os.Chmod(dir, mode))
			c, err := Open(dir)
			if err != nil {
				t.Fatalf("%v, first %v: %v", mode, first, err)
			}
			fi, err := os.Stat(dir)
			if err != nil || fi.Mode().Perm() != 0o700 || c.Dir().WasOpenToOthers() != mode.Perm() {
				t.Errorf("%v: %v, %v, was %v", mode, fi.Mode(), err, c.Dir().WasOpenToOthers())
			}
			c.Close()
		}
		c, err := Open(dir)
		if err != nil || c.Dir().WasOpenToOthers() != 0 {
			t.Fatalf("%v, again: %v", mode, err)
		}
		c.Close()
	}
}

func TestEmptyStateFile(t *testing.T) {
	dir := t.TempDir()
	do(t, os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, stateName), nil, 0o600))
	c := mustOpen(t, dir)
	if l := c.Load(); l.Status != StatusCorrupt || !strings.Contains(l.Reason, "0 bytes") {
		t.Errorf("%+v", l)
	}
	mustSave(t, c, sample())
	do(t, c.Close())
	if l := mustOpen(t, dir).Load(); l.Status != StatusRecord {
		t.Errorf("%+v", l)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	_, err := Open(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second Open: %v", err)
	}
	if pid := fmt.Sprintf("(process %d)", os.Getpid()); runtime.GOOS == "linux" && !strings.Contains(err.Error(), pid) {
		t.Errorf("%v does not say %s", err, pid)
	}
	if said, end := child(t, dir); !strings.HasPrefix(said, "true ") {
		t.Errorf("another process: %s", said)
	} else {
		end()
	}
	do(t, c.Close())

	said, end := child(t, dir)
	if said != "false <nil>" {
		t.Fatalf("after Close: %s", said)
	}
	if _, err = Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("beside another process: %v", err)
	}
	t.Log(err)
	if x, err := examine(t, dir); err != nil || x.Locked != (runtime.GOOS == "linux") {
		t.Errorf("Examine: locked %v, %v", x.Locked, err)
	}
	end() // as after kill -9, nothing is left behind
	mustOpen(t, dir)
}

// child runs a second flaked on dir until end is called. FLAKED_TEST_EMULATOR names the program
// that runs the tests of another processor: scripts/check-processors.sh sets it.
func child(t *testing.T, dir string) (said string, end func()) {
	t.Helper()
	command := append(strings.Fields(os.Getenv("FLAKED_TEST_EMULATOR")), os.Args[0])
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	in, err := cmd.StdinPipe()
	do(t, err)
	out, err := cmd.StdoutPipe()
	do(t, err, cmd.Start())
	b := make([]byte, 1000)
	n, err := out.Read(b)
	do(t, err)
	return strings.TrimSpace(string(b[:n])), func() { in.Close(); cmd.Process.Kill(); cmd.Wait() }
}

// A child has copies of the open files of its parent until its exec. They must not keep the lock of a
// StateFile that is closed.
func TestCloseUnlocksBesideACopyOfTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(c.f.(osFile).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	again.Close()
}

func TestCopiedAndRenamed(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	do(t, c.Close())

	moved := filepath.Join(base, "moved")
	do(t, os.Rename(dir, moved))
	if l := mustOpen(t, moved).Load(); l.Status != StatusRecord || l.Changed != nil {
		t.Errorf("renamed: %+v", l)
	}

	copied := filepath.Join(base, "copied")
	b, err := os.ReadFile(filepath.Join(moved, stateName))
	do(t, err, os.Mkdir(copied, 0o700), os.WriteFile(filepath.Join(copied, stateName), b, 0o600))
	l := mustOpen(t, copied).Load()
	if l.Status != StatusRecord || !slices.Contains(l.Changed, PartInode) ||
		slices.Contains(l.Changed, PartFilesystem) {
		t.Errorf("copied: %+v", l)
	}
	t.Logf("a copy changes %v", l.Changed)
}

func TestRefusedFilesystems(t *testing.T) {
	for name, want := range map[string]bool{"NFS": true, "SMB2": true, "CIFS": true, "FUSE": true, "9p": true, "Ceph": true,
		"nfs": true, "smbfs": true, "macfuse": true, "afpfs": true, "apfs": false, "hfs": false,
		"ext4": false, "xfs": false, "btrfs": false, "f2fs": false, "tmpfs": false, "ramfs": false, "overlay": false,
		"zfs": false, "filesystem 0x9f2f": false} {
		if got := refused(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// BenchmarkSave measures the renewal of ReservedUntil on the disk of the temporary directory.
func BenchmarkSave(b *testing.B) {
	c := mustOpen(b, filepath.Join(b.TempDir(), "state"))
	r := sample()
	mustSave(b, c, r)
	for b.Loop() {
		r.ReservedUntil += 1000
		mustSave(b, c, r)
	}
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}
