//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Inspect reads a state directory without locking or changing it, even while a node uses it.
//
// The error is fs.ErrNotExist if nothing has been written yet, and otherwise as for Open.
func Inspect(dir string) (l Loaded, err error) {
	dir = filepath.Clean(dir)
	d, err := openat(unix.AT_FDCWD, dir, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return l, fmt.Errorf("%w: %w", ErrUnsafeDir, err)
	}
	if err != nil {
		return l, fmt.Errorf("open the state directory: %w", err)
	}
	defer d.Close()
	f, _, err := openState(d, dir, unix.O_RDONLY)
	if err != nil {
		return l, err
	}
	defer f.Close()
	st, err := fstat(f)
	if err != nil {
		return l, err
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG {
		return l, fmt.Errorf("%w: %s is not a regular file", ErrUnsafeFile, f.Name())
	}
	fp, err := readFingerprint(f)
	if err != nil {
		return l, err
	}
	if l, err = inspect(osFile{f}, fp); err != nil {
		return l, err
	}
	if st.Uid != uint32(os.Geteuid()) {
		// The file belongs to another user, who may be allowed to read the product UUID
		// while this user is not, or the reverse. A difference in that part means nothing.
		l.Changed = slices.DeleteFunc(l.Changed, func(p string) bool { return p == PartProductUUID })
	}
	return l, nil
}

// inspect reads the file a second time if a block looks torn, because a node may be writing it. The node writes one
// block at a time, so only two separate writes can spoil both reads.
func inspect(f File, fp Fingerprint) (Loaded, error) {
	im, err := readImage(f)
	if err != nil {
		return Loaded{}, err
	}
	if l := im.load(fp); !l.Damaged && l.Status != StatusCorrupt {
		return l, nil
	}
	if im, err = readImage(f); err != nil {
		return Loaded{}, err
	}
	return im.load(fp), nil
}
