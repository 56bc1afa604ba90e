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
	x, err := Examine(dir)
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
	x, err = Examine(dir)
	if err != nil || x.Missing || x.Place != dir || x.Refused != nil || x.Owner != os.Geteuid() {
		t.Errorf("in use: %+v, %v", x, err)
	}
	if runtime.GOOS == "linux" && (!x.Locked || x.LockedBy != os.Getpid()) {
		t.Errorf("used by %v %d, and this is process %d", x.Locked, x.LockedBy, os.Getpid())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(dir); err != nil || x.Locked {
		t.Errorf("not in use any more: %+v, %v", x, err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(dir); err != nil || !errors.Is(x.Refused, ErrUnsafeDir) {
		t.Errorf("open to others: %+v, %v", x, err)
	}
	link := filepath.Join(above, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(link); err != nil || !errors.Is(x.Refused, ErrUnsafeDir) {
		t.Errorf("a link to it: %+v, %v", x, err)
	}
}

func TestTrySync(t *testing.T) {
	dir := t.TempDir()
	took, err := TrySync(dir, 3)
	if err != nil || len(took) != 3 || took[0] <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := TrySync(filepath.Join(dir, "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where there is no directory: %v", err)
	}
}
