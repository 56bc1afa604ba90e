//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

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

// checkSafe returns an error if the owner, the rights or the filesystem of the directory forbid its use.
func (d *Dir) checkSafe() error {
	st, err := fstat(d.self)
	if err != nil {
		return err
	}
	if err := checkOwner(d.path, st, ErrUnsafeDir); err != nil {
		return err
	}
	if isOpen(st) && !d.belongsToNode(st) {
		return fmt.Errorf("%w: %s is open to other users (mode %04o), and has files of others. Choose a directory "+
			"for flaked alone, or run chmod 700 %s", ErrUnsafeDir, d.path, st.Mode&0o777, d.path)
	}
	return checkFilesystem(d.self)
}

// isOpen reports whether other users have rights on a directory.
func isOpen(st unix.Stat_t) bool { return st.Mode&0o077 != 0 }

// belongsToNode reports whether a directory is a node's own, so that the node may take away the rights of others: it is
// empty, or has a state file, and all files in it belong to the node's user. /tmp is not such a directory.
func (d *Dir) belongsToNode(st unix.Stat_t) bool {
	files, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil || st.Mode&unix.S_ISVTX != 0 {
		return false
	}
	own := len(files) == 0
	for _, f := range files {
		fi, err := f.Info()
		if err != nil {
			return false
		}
		if sys, is := fi.Sys().(*syscall.Stat_t); !is || sys.Uid != st.Uid {
			return false
		}
		own = own || f.Name() == stateName
	}
	return own
}

// tighten takes away the rights of others on a directory that was checked. A kubelet gives them to the group of a
// volume when it sets fsGroup.
func (d *Dir) tighten() error {
	st, err := fstat(d.self)
	if err != nil || !isOpen(st) {
		return err
	}
	if err := d.self.Chmod(0o700); err != nil {
		return fmt.Errorf("%w: %s is open to other users (mode %04o), and flaked cannot change that: %w. Run "+
			"chmod 700 %s", ErrUnsafeDir, d.path, st.Mode&0o777, err, d.path)
	}
	d.wasOpen = fs.FileMode(st.Mode & 0o777)
	return nil
}

// checkOwner returns an error that wraps unsafe if the file belongs to another user.
func checkOwner(name string, st unix.Stat_t, unsafe error) error {
	if uid := uint32(os.Geteuid()); st.Uid != uid {
		return fmt.Errorf("%w: %s belongs to user %d, but flaked runs as user %d. Change the owner, or run flaked "+
			"as that user", unsafe, name, st.Uid, uid)
	}
	return nil
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

// checkState checks the type, links, owner and filesystem of f, the open state file. A bind mount can put the file on
// another filesystem than its directory.
func (d *Dir) checkState(f *os.File) (unix.Stat_t, error) {
	st, err := fstat(f)
	switch {
	case err != nil:
		return st, err
	case uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG:
		return st, fmt.Errorf("%w: %s is not a regular file", ErrUnsafeFile, f.Name())
	case st.Nlink != 1:
		return st, fmt.Errorf("%w: %s has %d hard links. It must have only one", ErrUnsafeFile, f.Name(), st.Nlink)
	}
	if err := checkOwner(f.Name(), st, ErrUnsafeFile); err != nil {
		return st, err
	}
	if err := checkFilesystem(f); err != nil {
		return st, err
	}
	return st, d.checkName(f)
}

// checkName returns an error unless the name of the state file is that of f. The lock is only useful on the file that
// other processes find under this name.
func (d *Dir) checkName(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := d.root.Lstat(stateName)
	if err != nil {
		return d.withPath(err)
	}
	if !os.SameFile(named, opened) {
		return fmt.Errorf("%w: %s was replaced while it was open", ErrUnsafeFile, f.Name())
	}
	return nil
}

func checkFilesystem(f *os.File) error {
	st, err := statfs(f)
	if err != nil {
		return err
	}
	if name := filesystemName(st); refused(name) {
		return fmt.Errorf("%w: %s is on %s, which may give two machines the same lock and may lose synced writes. "+
			"Use a directory on a local disk", ErrFilesystem, filepath.Clean(f.Name()), name)
	}
	return nil
}
