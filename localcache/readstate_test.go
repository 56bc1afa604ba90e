//go:build linux || darwin

package localcache

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/flaked/flaked/internal/testkit/memfile"
)

func TestInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := ReadState(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	do(t, os.Mkdir(dir, 0o700))
	if _, err := ReadState(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("ReadState left %v", names)
	}
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	if l, err := ReadState(dir); err != nil || !reflect.DeepEqual(l, c.Load()) {
		t.Errorf("%+v, %v", l, err)
	}
	do(t, c.Close())
	do(t, os.Symlink(dir, dir+"-link"))
	if _, err := ReadState(dir + "-link"); !errors.Is(err, ErrUnsafeDir) {
		t.Errorf("link: %v", err)
	}
}

// tornOnce returns a half-written block 0 at the first read of it.
type tornOnce struct {
	*memfile.File
	torn *bool
}

func (f tornOnce) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if off == 0 && !*f.torn {
		*f.torn = true
		clear(p[100:])
	}
	return n, err
}

func TestInspectRetries(t *testing.T) {
	image, want := saved(t)
	l, err := loadUnlocked(tornOnce{memfile.New(image), new(bool)}, fpA)
	if err != nil || l.Damaged || !reflect.DeepEqual(l.Record, want) {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = loadUnlocked(memfile.New(bytes.Repeat([]byte{1}, FileSize)), fpA)
	if err != nil || l.Status != StatusCorrupt {
		t.Errorf("%+v, %v", l, err)
	}
}
