//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Examine looks at a state directory and changes nothing. The caller must close the Examination.
func Examine(dir string) (x Examination, err error) {
	x.Place = filepath.Clean(dir)
	for {
		_, err := os.Lstat(x.Place)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(x.Place) == x.Place {
			return x, err
		}
		x.Missing, x.Place = true, filepath.Dir(x.Place)
	}
	if x.dir, x.Refused, err = openPlace(x.Place, x.Missing); err != nil {
		return x, err
	}
	st, err := fstat(x.dir.self)
	if err != nil {
		return x, err
	}
	x.Owner = int(st.Uid)
	x.CloneUnseen = x.dir.CloneUnseen()
	sf, err := statfs(x.dir.self)
	if err != nil {
		return x, err
	}
	x.Filesystem = filesystemName(sf)
	x.FreeBytes = uint64(sf.Bavail) * uint64(sf.Bsize)
	x.FreeInodes, x.Inodes = uint64(sf.Ffree), uint64(sf.Files)
	if x.Missing {
		return x, nil
	}
	if f, _, err := x.dir.openState(os.O_RDONLY); err == nil {
		x.LockedBy, x.Locked = lockHolder(f)
		f.Close()
	}
	return x, nil
}

// openPlace opens what Examine describes. refused is Examination.Refused.
func openPlace(place string, missing bool) (d *Dir, refused, err error) {
	if !missing {
		if d, refused = openByName(place); refused == nil {
			return d, d.checkSafe(), nil
		}
	}
	if d, err = openHandle(place); err == nil && missing {
		refused = checkFilesystem(d.self)
	}
	return d, refused, err
}

// TrySync writes a block to a temporary file in the directory and syncs it, n times, in the same way as a record is
// written. It returns the duration of each write with its sync.
func (x Examination) TrySync(n int) ([]time.Duration, error) {
	name := ".doctor-" + strconv.FormatUint(rand.Uint64(), 36)
	f, err := x.dir.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, x.dir.withPath(err)
	}
	defer f.Close()
	if err := x.dir.root.Remove(name); err != nil {
		return nil, x.dir.withPath(err)
	}
	block := make([]byte, blockSize)
	var took []time.Duration
	for i := range n {
		block[0] = byte(i)
		begin := time.Now()
		if _, err := f.WriteAt(block, 0); err != nil {
			return took, err
		}
		if err := datasync(f); err != nil {
			return took, fmt.Errorf("%s: %w", x.Place, err)
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}

// ReadState reads the state file of a directory without locking or changing it, even while a node uses it. Examine
// looks at the directory itself.
//
// The error is fs.ErrNotExist if there is no state file, and otherwise as for Open.
func ReadState(dir string) (l Loaded, err error) {
	d, err := openByName(filepath.Clean(dir))
	if err != nil {
		return l, err
	}
	defer d.Close()
	return d.readState()
}

// ReadState reads the state file of the directory, as the function ReadState does.
func (x Examination) ReadState() (Loaded, error) {
	if x.Missing {
		return Loaded{}, fmt.Errorf("state directory: %w", fs.ErrNotExist)
	}
	return x.dir.readState()
}

// readState reads the state file, as ReadState does.
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
