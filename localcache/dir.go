//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

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
	st, err := fstat(d)
	if err != nil {
		return err
	}
	if err := checkOwner(d, st, ErrUnsafeDir); err != nil {
		return err
	}
	if perm := uint32(st.Mode) & 0o777; perm&0o077 != 0 {
		return fmt.Errorf("%w: %s is open to other users (mode %04o). Run chmod 700 %s", ErrUnsafeDir, d.Name(), perm,
			d.Name())
	}
	return checkFilesystem(d)
}

// checkOwner returns an error that wraps unsafe if f belongs to another user.
func checkOwner(f *os.File, st unix.Stat_t, unsafe error) error {
	if uid := uint32(os.Geteuid()); st.Uid != uid {
		return fmt.Errorf("%w: %s belongs to user %d, but flaked runs as user %d. Change the owner, or run flaked "+
			"as that user", unsafe, f.Name(), st.Uid, uid)
	}
	return nil
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

// checkState checks the type, links, owner and filesystem of f, the open state file in d. A bind mount can put the
// file on another filesystem than its directory.
func checkState(d, f *os.File) (unix.Stat_t, error) {
	st, err := fstat(f)
	switch {
	case err != nil:
		return st, err
	case uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG:
		return st, fmt.Errorf("%w: %s is not a regular file", ErrUnsafeFile, f.Name())
	case st.Nlink != 1:
		return st, fmt.Errorf("%w: %s has %d hard links. It must have only one", ErrUnsafeFile, f.Name(), st.Nlink)
	}
	if err := checkOwner(f, st, ErrUnsafeFile); err != nil {
		return st, err
	}
	if err := checkFilesystem(f); err != nil {
		return st, err
	}
	return st, checkNamed(d, f)
}

// checkNamed returns an error unless the name of the state file in d is that of f. The lock is only useful on the file
// that other processes find under this name.
func checkNamed(d, f *os.File) error {
	opened, err := fstat(f)
	if err != nil {
		return err
	}
	var named unix.Stat_t
	if err := unix.Fstatat(int(d.Fd()), stateName, &named, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	if named.Dev != opened.Dev || named.Ino != opened.Ino {
		return fmt.Errorf("%w: %s was replaced while it was open", ErrUnsafeFile, f.Name())
	}
	return nil
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

func checkFilesystem(f *os.File) error {
	st, err := statfs(f)
	if err != nil {
		return err
	}
	if name := filesystemName(st); refused(name) {
		return fmt.Errorf("%w: %s is on %s, which may give two machines the same lock and may lose synced writes. "+
			"Use a directory on a local disk", ErrFilesystem, f.Name(), name)
	}
	return nil
}

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	filesystem, err := filesystemID(f)
	if err != nil {
		return Fingerprint{}, err
	}
	st, err := fstat(f)
	if err != nil {
		return Fingerprint{}, err
	}
	return Fingerprint{
		MachineID:   shortHash(PartMachineID, machineID()),
		ProductUUID: uuidHash(productUUID()),
		Filesystem:  shortHash(PartFilesystem, filesystem),
		Inode:       shortHash(PartInode, strconv.FormatUint(st.Ino, 10)),
		BirthTime:   shortHash(PartBirthTime, birthTime(f)),
	}, nil
}

func fstat(f *os.File) (st unix.Stat_t, err error) {
	if err = unix.Fstat(int(f.Fd()), &st); err != nil {
		err = fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	return st, err
}

func statfs(f *os.File) (st unix.Statfs_t, err error) {
	if err = retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		err = fmt.Errorf("statfs %s: %w", f.Name(), err)
	}
	return st, err
}

// fsid returns f_fsid, "" if the filesystem has none.
func fsid(st unix.Statfs_t) string {
	id := st.Fsid.Val
	if id[0] == 0 && id[1] == 0 {
		return ""
	}
	return fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1]))
}
