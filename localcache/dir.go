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

// makeDir creates the state directory, durably, if nothing exists under that name.
func makeDir(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // openDir checks it
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	} else if err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	p, err := os.Open(parent)
	if err != nil {
		return fmt.Errorf("sync the parent of the state directory: %w", err)
	}
	defer p.Close()
	if err := p.Sync(); err != nil {
		return fmt.Errorf("sync the parent of the state directory: %w", err)
	}
	return nil
}

// openDir opens the state directory and checks that it is safe to use. It checks the
// directory that it has opened, because the name may lead elsewhere a moment later.
func openDir(dir string) (*os.File, error) {
	fi, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: %s is a symbolic link. Use its target path instead", ErrUnsafeDir, dir)
	case !fi.IsDir():
		return nil, fmt.Errorf("%w: %s is not a directory. Correct the path", ErrUnsafeDir, dir)
	}
	d, err := openat(unix.AT_FDCWD, dir, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	if err := checkDir(d); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func checkDir(d *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return fmt.Errorf("stat %s: %w", d.Name(), err)
	}
	if uid := uint32(os.Geteuid()); st.Uid != uid {
		return fmt.Errorf("%w: %s belongs to user %d, but flaked runs as user %d. Change the owner, or run flaked "+
			"as that user", ErrUnsafeDir, d.Name(), st.Uid, uid)
	}
	if perm := uint32(st.Mode) & 0o777; perm&0o077 != 0 {
		return fmt.Errorf("%w: %s is open to other users (mode %04o). Run chmod 700 %s", ErrUnsafeDir, d.Name(), perm,
			d.Name())
	}
	return checkFilesystem(d)
}

// openState opens the state file in d. With O_RDWR it creates a missing file, and made reports whether it did.
func openState(d *os.File, dir string, flag int) (f *os.File, made bool, err error) {
	path := filepath.Join(dir, stateName)
	fd := int(d.Fd())
	f, err = openat(fd, stateName, path, flag)
	if errors.Is(err, fs.ErrNotExist) && flag == unix.O_RDWR {
		f, err = openat(fd, stateName, path, flag|unix.O_CREAT|unix.O_EXCL)
		if made = err == nil; errors.Is(err, fs.ErrExist) {
			f, err = openat(fd, stateName, path, flag)
		}
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, false, fmt.Errorf("%w: %s is a symbolic link", ErrUnsafeFile, path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("open the state file: %w", err)
	}
	return f, made, nil
}

// checkState checks the type, links, owner and filesystem of the open state file. A bind
// mount can put the file on another filesystem than its directory.
func checkState(f *os.File) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG {
		return st, fmt.Errorf("%w: %s is not a regular file", ErrUnsafeFile, f.Name())
	}
	if st.Nlink != 1 {
		return st, fmt.Errorf("%w: %s has %d hard links. It must have only one", ErrUnsafeFile, f.Name(), st.Nlink)
	}
	if uid := uint32(os.Geteuid()); st.Uid != uid {
		return st, fmt.Errorf("%w: %s belongs to user %d, but flaked runs as user %d. Change the owner, or run "+
			"flaked as that user", ErrUnsafeFile, f.Name(), st.Uid, uid)
	}
	return st, checkFilesystem(f)
}

// openat never follows a symbolic link and never blocks on a FIFO. Child processes do not inherit the file.
func openat(at int, rel, name string, flag int) (*os.File, error) {
	flag |= unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, rel, flag, 0o600)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// filesystemError returns the ErrFilesystem error for path on the filesystem called name.
func filesystemError(path, name string) error {
	return fmt.Errorf("%w: %s is on %s, which may give two machines the same lock and may lose synced writes. Use a "+
		"directory on a local disk", ErrFilesystem, path, name)
}

func statfs(f *os.File) (unix.Statfs_t, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return st, fmt.Errorf("statfs %s: %w", f.Name(), err)
	}
	return st, nil
}
