//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open opens the state directory, creates it if it does not exist, and locks its state file against every other process
// until Close. Open returns ErrLocked, ErrUnsafeDir, ErrUnsafeFile, ErrFilesystem, ErrOtherFormat or an error of the
// system. It takes away the rights of other users on the directory if that is a node's own, as Dir.WasOpenToOthers
// tells, and changes nothing of a directory that it refuses.
//
// A state file with lost contents is not an error: see Load.
func Open(dir string) (_ *StateFile, err error) {
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
	cache.dir, d.state = d, opened
	return cache, nil
}

// makeDir creates a directory, and those above it that do not exist, unless something exists under its name. It calls
// sync for the parent of each, so that a power cut does not lose them.
func makeDir(dir string, mode fs.FileMode, sync func(dir string) error) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // openDir checks it
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent, 0o755, sync); err != nil {
		return err
	}
	if err := os.Mkdir(dir, mode); errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	} else if err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	if err := sync(parent); err != nil {
		return fmt.Errorf("sync the parent of the state directory: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// openDir opens the state directory and checks that it is safe to use. It checks the
// directory that it has opened, because the name may lead elsewhere a moment later.
func openDir(path string) (*Dir, error) {
	d, err := openByName(path)
	if err != nil {
		return nil, err
	}
	if err = d.checkSafe(); err == nil {
		err = d.tighten()
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// openByName opens the directory with this name, which must not be a symbolic link.
func openByName(path string) (*Dir, error) {
	named, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: %s is a symbolic link. Use its target path instead", ErrUnsafeDir, path)
	case !named.IsDir():
		return nil, fmt.Errorf("%w: %s is not a directory. Correct the path", ErrUnsafeDir, path)
	}
	d, err := openHandle(path)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	if opened, err := d.self.Stat(); err != nil || !os.SameFile(named, opened) {
		d.Close()
		return nil, fmt.Errorf("%w: %s was replaced while it was being opened", ErrUnsafeDir, path)
	}
	return d, nil
}

// openState opens the state file. With O_RDWR it creates a missing file, and made reports whether it did. It does not
// wait for the writer of a FIFO.
func (d *Dir) openState(flag int) (f *os.File, made bool, err error) {
	if fi, err := d.root.Lstat(stateName); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return nil, false, fmt.Errorf("%w: %s is a symbolic link", ErrUnsafeFile, filepath.Join(d.path, stateName))
	}
	open := func(flag int) (*os.File, error) { return d.root.OpenFile(stateName, flag|unix.O_NONBLOCK, 0o600) }
	f, err = open(flag)
	if errors.Is(err, fs.ErrNotExist) && flag == os.O_RDWR {
		f, err = open(flag | os.O_CREATE | os.O_EXCL)
		if made = err == nil; errors.Is(err, fs.ErrExist) {
			f, err = open(flag)
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("open the state file: %w", d.withPath(err))
	}
	return f, made, nil
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
