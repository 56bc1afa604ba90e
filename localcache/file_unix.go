//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// osFile implements File with the state file of a directory, which it owns. Only for reading, dir may be nil.
type osFile struct {
	*os.File
	dir *Dir
}

func (f osFile) Datasync() error { return datasync(f.File) }

// Close closes the directory, unlocks the file and closes it. A child that this program is starting has a copy of
// the open file until its exec, and would keep the lock as long.
func (f osFile) Close() error {
	closing := f.dir.Close() // before another process may get the lock
	_ = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) })
	return errors.Join(f.File.Close(), closing)
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
	err := f.dir.checkName(f.File)
	if err == nil {
		err = f.dir.Remove(stateName)
	}
	if err != nil {
		return fmt.Errorf("delete the state file: %w", err)
	}
	return nil
}
