//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open opens the state directory, creates it if it does not exist, and locks its state file against every other process
// until Close. Open returns ErrLocked, ErrUnsafeDir, ErrUnsafeFile, ErrFilesystem, ErrOtherFormat or an error of the
// system. It takes away the rights of other users on the directory if that is a node's own, as Dir.WasOpen tells, and
// changes nothing of a directory that it refuses.
//
// A state file with lost contents is not an error: see Load.
func Open(dir string) (_ *Cache, err error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no path given", ErrUnsafeDir)
	}
	dir = filepath.Clean(dir)
	if err := makeDir(dir, 0o700, syncDir); err != nil {
		return nil, err
	}
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	opened, made, err := d.openState(os.O_RDWR)
	if err != nil {
		d.Close()
		return nil, err
	}
	f := osFile{opened, d}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := lock(f.File, d.path); err != nil {
		return nil, err
	}
	st, err := d.checkState(f.File)
	if err != nil {
		return nil, err
	}
	if made && st.Size == 0 { // else another process has locked and written the file before
		if err := preallocate(f); err != nil {
			_ = d.root.Remove(stateName) // there is no room, and the file would look like a truncated one
			return nil, err
		}
	}
	// Sync even if the file was there: the process that created it may have died before it synced the directory.
	if err := d.self.Sync(); err != nil {
		return nil, fmt.Errorf("sync the state directory: %w", err)
	}
	fp, err := readFingerprint(f.File)
	if err != nil {
		return nil, err
	}
	cache, err := New(f, fp)
	if err != nil {
		return nil, err
	}
	cache.dir = d
	return cache, nil
}

// lock locks the state file and does not wait. It returns ErrLocked if another process has the lock.
func lock(f *os.File, dir string) error {
	err := retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		by := "another flaked"
		if pid, _ := lockHolder(f); pid != 0 {
			by = fmt.Sprintf("another flaked (process %d)", pid)
		}
		return fmt.Errorf("%w: %s uses %s. Give each node a state directory of its own", ErrLocked, by, dir)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
