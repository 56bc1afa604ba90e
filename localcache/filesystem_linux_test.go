package localcache

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// volume is a filesystem in a file, which the tests mount.
type volume struct {
	t    *testing.T
	file string
	loop string
	dir  string
}

// run runs a command, and skips the test if this machine cannot.
func run(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.Command(command, args...).CombinedOutput()
	if err != nil {
		t.Skipf("%s %v: %v %s", command, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (m *volume) mount() {
	m.t.Helper()
	m.loop = run(m.t, "losetup", "-f", "--show", m.file)
	m.t.Cleanup(func() { exec.Command("losetup", "-d", m.loop).Run() })
	run(m.t, "mount", m.loop, m.dir)
	m.t.Cleanup(func() { exec.Command("umount", m.dir).Run() })
}

func (m *volume) unmount() {
	m.t.Helper()
	run(m.t, "umount", m.dir)
	run(m.t, "losetup", "-d", m.loop)
}

// changed returns what Open finds changed in a state directory, and saves nothing.
func changed(t *testing.T, dir string) []string {
	t.Helper()
	c, err := Open(dir)
	do(t, err)
	defer c.Close()
	l := c.Load()
	if l.Status != StatusRecord {
		t.Fatalf("%s: %+v", dir, l)
	}
	return l.Changed
}

func device(t *testing.T, path string) uint64 {
	var st unix.Stat_t
	do(t, unix.Stat(path, &st))
	return st.Dev
}

// TestFilesystemIsKnownAgain mounts filesystems from one device, then from another, as after a
// reboot. The state directory must be resumed. Its copies and clones must not be.
func TestFilesystemIsKnownAgain(t *testing.T) {
	needRoot(t)
	for _, tt := range []struct {
		name  string
		mkfs  []string
		clone []string // gives the unmounted filesystem a new UUID
	}{
		{"ext4", []string{"mkfs.ext4", "-q", "-F"}, []string{"tune2fs", "-f", "-U", "random"}},
		{"xfs", []string{"mkfs.xfs", "-q", "-f"}, []string{"xfs_admin", "-U", "generate"}},
		{"btrfs", []string{"mkfs.btrfs", "-q", "-f"}, []string{"btrfstune", "-f", "-m"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "xfs" && os.Getenv("FLAKED_TEST_EMULATOR") != "" {
				t.Skip("qemu does not pass on the request for the UUID of an XFS")
			}
			m := &volume{t: t, file: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
			do(t, os.WriteFile(m.file, nil, 0o600), os.Truncate(m.file, 320<<20))
			run(t, tt.mkfs[0], append(tt.mkfs[1:], m.file)...)
			m.mount()
			dir := filepath.Join(m.dir, "state")
			if tt.name == "btrfs" {
				run(t, "btrfs", "subvolume", "create", dir)
				do(t, os.Chmod(dir, 0o700))
			}
			c := mustOpen(t, dir)
			mustSave(t, c, sample())
			do(t, c.Close())
			first := device(t, dir)
			run(t, "cp", "-a", dir, m.dir+"/copied")
			run(t, "cp", "-a", dir, filepath.Dir(m.file)+"/elsewhere")
			if got := changed(t, m.dir+"/copied"); !slices.Contains(got, PartInode) {
				t.Errorf("cp -a changes %v", got)
			}
			if got := changed(t, filepath.Dir(m.file)+"/elsewhere"); !slices.Contains(got, PartFilesystem) {
				t.Errorf("cp -a to another filesystem changes %v", got)
			}
			if tt.name == "btrfs" {
				run(t, "btrfs", "subvolume", "snapshot", dir, m.dir+"/snapshot")
				if got := changed(t, m.dir+"/snapshot"); !slices.Equal(got, []string{PartFilesystem}) {
					t.Errorf("a snapshot changes %v", got)
				}
			}

			m.unmount()
			other := &volume{t: t, file: filepath.Join(t.TempDir(), "other"), dir: t.TempDir()}
			do(t, os.WriteFile(other.file, nil, 0o600), os.Truncate(other.file, 64<<20))
			run(t, "mkfs.ext4", "-q", "-F", other.file)
			other.mount() // takes the device that the filesystem had
			m.mount()
			if device(t, dir) == first && tt.name != "btrfs" {
				t.Skip("the device has the same number")
			}
			if got := changed(t, dir); got != nil {
				t.Errorf("mounted from another device: %v", got)
			}

			m.unmount()
			run(t, tt.clone[0], append(tt.clone[1:], m.file)...)
			m.mount()
			if got := changed(t, dir); !slices.Equal(got, []string{PartFilesystem}) {
				t.Errorf("a clone with a new UUID changes %v", got)
			}
		})
	}
}
