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
// system. It does not change the owner or the mode of a directory that it refuses.
//
// A state file with lost contents is not an error: see Load.
func Open(dir string) (*Cache, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no path given", ErrUnsafeDir)
	}
	dir = filepath.Clean(dir)
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, made, err := openState(d, dir, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	c, err := openLocked(d, f, made)
	if err != nil {
		osFile{f}.Close()
		return nil, err
	}
	return c, nil
}

// openLocked locks f, the state file in d, and reads it.
func openLocked(d, f *os.File, made bool) (*Cache, error) {
	if err := lock(f, d.Name()); err != nil {
		return nil, err
	}
	st, err := checkState(d, f)
	if err != nil {
		return nil, err
	}
	if made && st.Size == 0 { // else another process has locked and written the file before
		if err := preallocate(osFile{f}); err != nil {
			// There is no room. Remove the file, because it would look like a truncated one.
			unix.Unlinkat(int(d.Fd()), stateName, 0)
			return nil, err
		}
	}
	// Sync even if the file was there: the process that created it may have died before it synced the directory.
	if err := d.Sync(); err != nil {
		return nil, fmt.Errorf("sync the state directory: %w", err)
	}
	fp, err := readFingerprint(f)
	if err != nil {
		return nil, err
	}
	return New(osFile{f}, fp)
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

// osFile implements File with a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) Datasync() error { return datasync(f.File) }

// Close unlocks the file before it closes it. A child that this program is starting has a copy of
// the open file until its exec, and would keep the lock as long.
func (f osFile) Close() error {
	_ = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
	return f.File.Close()
}

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// Remove is part of File.
func (f osFile) Remove() error {
	d, err := os.Open(filepath.Dir(f.Name()))
	if err != nil {
		return fmt.Errorf("delete the state file: %w", err)
	}
	defer d.Close()
	if err = checkNamed(d, f.File); err == nil {
		err = unix.Unlinkat(int(d.Fd()), stateName, 0)
	}
	if err != nil {
		return fmt.Errorf("delete the state file: %w", err)
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the state directory: %w", err)
	}
	return nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
