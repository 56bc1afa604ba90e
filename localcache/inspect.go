//go:build linux || darwin

package localcache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Inspect reads the state file of a directory without locking or changing it, even while a node uses it. Examine looks
// at the directory itself.
//
// The error is fs.ErrNotExist if there is no state file, and otherwise as for Open.
func Inspect(dir string) (l Loaded, err error) {
	d, err := openByName(filepath.Clean(dir))
	if err != nil {
		return l, err
	}
	defer d.Close()
	return d.readState()
}

// Inspect reads the state file of the directory, as the function Inspect does.
func (x Examination) Inspect() (Loaded, error) {
	if x.Missing {
		return Loaded{}, fmt.Errorf("state directory: %w", fs.ErrNotExist)
	}
	return x.dir.readState()
}

// readState reads the state file, as Inspect does.
func (d *Dir) readState() (l Loaded, err error) {
	f, _, err := d.openState(os.O_RDONLY)
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
	if l, err = loadUnlocked(osFile{File: f}, fp); err != nil {
		return l, err
	}
	if st.Uid != uint32(os.Geteuid()) {
		// The file belongs to another user, who may be allowed to read the product UUID
		// while this user is not, or the reverse. A difference in that part means nothing.
		l.Changed = slices.DeleteFunc(l.Changed, func(p string) bool { return p == PartProductUUID })
	}
	return l, nil
}

// loadUnlocked reads a state file that this process has not locked. It reads the file a second time if a block looks
// torn, because a node may be writing it. The node writes one block at a time, so only two separate writes can spoil
// both reads.
func loadUnlocked(f File, fp Fingerprint) (Loaded, error) {
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
