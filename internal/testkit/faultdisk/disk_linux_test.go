package faultdisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// opened returns a file of two blocks on the disk, open for writing like a node's state file.
func opened(t *testing.T, d *Disk) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(d.Dir(), "state"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := save(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// save overwrites the file's two blocks in place and syncs them.
func save(f *os.File) error {
	if _, err := f.WriteAt(make([]byte, 8192), 0); err != nil {
		return err
	}
	return unix.Fdatasync(int(f.Fd()))
}

func TestFill(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	another := filepath.Join(d.Dir(), "another")
	for range 3 {
		d.Fill()
		if err := os.WriteFile(another, []byte("x"), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a new file on a full disk: %v", err)
		}
		if _, err := f.WriteAt([]byte("x"), 1<<20); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a file that grows on a full disk: %v", err)
		}
		if err := save(f); err != nil {
			t.Errorf("a file that does not grow: %v", err)
		}
		d.Free()
		if err := os.WriteFile(another, make([]byte, 1<<20), 0o600); err != nil {
			t.Errorf("after Free: %v", err)
		}
		if err := os.Remove(another); err != nil {
			t.Error(err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	for range 3 {
		d.ReadOnly()
		for range 3 {
			if err := save(f); !errors.Is(err, unix.EIO) {
				t.Errorf("an open file on a disk that is read-only: %v", err)
			}
		}
		if _, err := f.ReadAt(make([]byte, 8192), 0); err != nil {
			t.Errorf("reading: %v", err)
		}
		d.ReadWrite()
		_ = save(f)
		for range 3 {
			if err := save(f); err != nil {
				t.Errorf("after ReadWrite: %v", err)
			}
		}
	}
	f.Close()
	d.ReadOnly()
	if _, err := os.OpenFile(f.Name(), os.O_RDWR, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("opening on a disk that is read-only: %v", err)
	}
	d.ReadWrite()
	opened(t, d)
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	d := New(t)
	f := opened(t, d)
	for range 3 {
		d.Freeze()
		done := make(chan error, 1)
		go func() { done <- save(f) }()
		select {
		case err := <-done:
			t.Errorf("a frozen disk has synced: %v", err)
			done <- err
		case <-time.After(100 * time.Millisecond):
		}
		d.Thaw()
		if err := <-done; err != nil {
			t.Errorf("after Thaw: %v", err)
		}
	}
}
