//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkSafe returns an error if the owner, the rights or the filesystem of the directory forbid its use.
func (d *Dir) checkSafe() error {
	st, err := fstat(d.self)
	if err != nil {
		return err
	}
	if err := checkOwner(d.path, st, ErrUnsafeDir); err != nil {
		return err
	}
	if openToOthers(st) && !d.belongsToNode(st) {
		return fmt.Errorf("%w: %s is open to other users (mode %04o), and has files of others. Choose a directory "+
			"for flaked alone, or run chmod 700 %s", ErrUnsafeDir, d.path, st.Mode&0o777, d.path)
	}
	return checkFilesystem(d.self)
}

// openToOthers reports whether other users have rights on a directory.
func openToOthers(st unix.Stat_t) bool { return st.Mode&0o077 != 0 }

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
	if err != nil || !openToOthers(st) {
		return err
	}
	if err := d.self.Chmod(0o700); err != nil {
		return fmt.Errorf("%w: %s is open to other users (mode %04o), and flaked cannot change that: %w. Run "+
			"chmod 700 %s", ErrUnsafeDir, d.path, st.Mode&0o777, err, d.path)
	}
	d.wasOpenToOthers = fs.FileMode(st.Mode & 0o777)
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

// Check returns an error if a process that starts with the path of the directory would not find this directory and this
// state file there: an ErrGone, or an error of the system.
func (d *Dir) Check() error {
	opened, err := d.self.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(named, opened):
		return fmt.Errorf("%s was %w", d.path, ErrGone)
	case err != nil:
		return err
	}
	if err = d.checkName(d.state); errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnsafeFile) {
		return fmt.Errorf("%s was %w", filepath.Join(d.path, stateName), ErrGone)
	}
	return err
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

// refusedFilesystems are parts of the names of filesystems on which two hosts may both get the lock, or a sync
// may return before the data are durable. The node cannot detect either.
var refusedFilesystems = []string{"nfs", "smb", "cifs", "afp", "webdav", "fuse", "9p", "ceph"}

// refused reports whether the filesystem with this name is refused.
func refused(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(refusedFilesystems, func(part string) bool { return strings.Contains(name, part) })
}
