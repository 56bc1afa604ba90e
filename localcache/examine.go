//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Examination is what can be told of a state directory without using it.
type Examination struct {
	// Missing: there is none yet; the rest is of Place, the nearest directory
	// above it that exists.
	Missing bool
	Place   string
	// Refused is why Open would refuse it; nil if it would not. Owner is the
	// user that it belongs to.
	Refused error
	Owner   int
	// Filesystem is what it is on: ext4, tmpfs.
	Filesystem string
	// TellsMachines: a clone on another machine would be noticed.
	TellsMachines bool
	// Of the filesystem, for a user who is not root. Inodes are 0 where they are
	// not counted.
	FreeBytes, Bytes   uint64
	FreeInodes, Inodes uint64
	// Locked: a running node uses it, the process LockedBy, which is 0 when that
	// cannot be seen.
	Locked   bool
	LockedBy int
}

// Examine looks at a state directory and changes nothing.
func Examine(dir string) (x Examination, err error) {
	x.Place = filepath.Clean(dir)
	for {
		_, err := os.Lstat(x.Place)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(x.Place) == x.Place {
			return x, fmt.Errorf("localcache: %w", err)
		}
		x.Missing, x.Place = true, filepath.Dir(x.Place)
	}
	d, err := os.Open(x.Place)
	if err != nil {
		return x, fmt.Errorf("localcache: %w", err)
	}
	defer d.Close()
	if x.Missing {
		x.Refused = checkFilesystem(d)
	} else if opened, err := openDir(x.Place); err != nil {
		x.Refused = err
	} else {
		opened.Close()
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return x, fmt.Errorf("localcache: stat %s: %w", x.Place, err)
	}
	x.Owner = int(st.Uid)
	fp, err := readFingerprint(d)
	if err != nil {
		return x, err
	}
	x.TellsMachines = fp.TellsMachines()
	sf, err := statfs(d)
	if err != nil {
		return x, err
	}
	x.Filesystem = filesystemName(sf)
	x.FreeBytes, x.Bytes = uint64(sf.Bavail)*uint64(sf.Bsize), uint64(sf.Blocks)*uint64(sf.Bsize)
	x.FreeInodes, x.Inodes = uint64(sf.Ffree), uint64(sf.Files)
	if x.Missing {
		return x, nil
	}
	if f, _, err := openState(d, x.Place, unix.O_RDONLY); err == nil {
		x.LockedBy, x.Locked = lockHolder(f)
		f.Close()
	}
	return x, nil
}

// TrySync writes a block to a file without a name in dir and syncs it, as the
// record is written, n times, and returns how long each took.
func TrySync(dir string, n int) ([]time.Duration, error) {
	f, err := nameless(dir)
	if err != nil {
		return nil, fmt.Errorf("localcache: %w", err)
	}
	defer f.Close()
	block := make([]byte, blockSize)
	var took []time.Duration
	for i := range n {
		block[0] = byte(i)
		begin := time.Now()
		if _, err := f.WriteAt(block, 0); err != nil {
			return took, fmt.Errorf("localcache: %w", err)
		}
		if err := datasync(f); err != nil {
			return took, fmt.Errorf("localcache: %s: %w", dir, err)
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}

// nameless makes a file that ends with its descriptor.
func nameless(dir string) (*os.File, error) {
	if f, err := unnamedFile(dir); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, ".doctor-*") // on filesystems that have none without a name
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
