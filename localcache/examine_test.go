//go:build linux || darwin

package localcache

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestExamine(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "not", "yet")
	x, err := examine(t, dir)
	if err != nil || !x.Missing || x.Place != above || x.Refused != nil {
		t.Errorf("before it is made: %+v, %v", x, err)
	}
	if x.Filesystem == "" || x.FreeBytes == 0 || x.FreeInodes > x.Inodes {
		t.Errorf("its filesystem: %+v", x)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err = examine(t, dir)
	if err != nil || x.Missing || x.Place != dir || x.Refused != nil || x.Owner != os.Geteuid() {
		t.Errorf("in use: %+v, %v", x, err)
	}
	if runtime.GOOS == "linux" && (!x.Locked || x.LockedBy != os.Getpid()) {
		t.Errorf("used by %v %d, and this is process %d", x.Locked, x.LockedBy, os.Getpid())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = examine(t, dir); err != nil || x.Locked {
		t.Errorf("not in use any more: %+v, %v", x, err)
	}
	do(t, os.Chmod(dir, 0o755)) // a start changes that
	if x, err = examine(t, dir); err != nil || x.Refused != nil {
		t.Errorf("open to others: %+v, %v", x, err)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("it changed the directory: %v, %v", fi, err)
	}
	do(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644), os.Remove(filepath.Join(dir, stateName)))
	if x, err = examine(t, dir); err != nil || !errors.Is(x.Refused, ErrUnsafeDir) {
		t.Errorf("open to others, with files of others: %+v, %v", x, err)
	}
	link := filepath.Join(above, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if x, err = examine(t, link); err != nil || !errors.Is(x.Refused, ErrUnsafeDir) {
		t.Errorf("a link to it: %+v, %v", x, err)
	}
}

func TestTrySync(t *testing.T) {
	dir := t.TempDir()
	for _, place := range []string{dir, filepath.Join(dir, "none")} { // there, or in the directory above it
		x, err := examine(t, place)
		if err != nil {
			t.Fatal(err)
		}
		took, err := x.TrySync(3)
		if err != nil || len(took) != 3 || took[0] <= 0 {
			t.Errorf("%v, %v", took, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// examine closes the examination when the test ends.
func examine(t *testing.T, dir string) (Examination, error) {
	x, err := Examine(dir)
	t.Cleanup(x.Close)
	return x, err
}

// All that an examination says is of one directory, also if that is renamed meanwhile.
func TestExaminationOfARenamedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	x, err := examine(t, dir)
	do(t, err, os.Rename(dir, dir+".old"))
	if l, err := x.ReadState(); err != nil || l.Status != StatusRecord {
		t.Errorf("%+v, %v", l, err)
	}
	if took, err := x.TrySync(1); err != nil || len(took) != 1 {
		t.Errorf("%v, %v", took, err)
	}
}
