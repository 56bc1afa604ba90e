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

// Examine looks at a state directory and changes nothing.
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
	d, err := os.Open(x.Place)
	if err != nil {
		return x, err
	}
	defer d.Close()
	if x.Missing {
		x.Refused = checkFilesystem(d)
	} else if opened, err := openDir(x.Place); err != nil {
		x.Refused = err
	} else {
		opened.Close()
	}
	st, err := fstat(d)
	if err != nil {
		return x, err
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
	x.FreeBytes = uint64(sf.Bavail) * uint64(sf.Bsize)
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

// TrySync writes a block to a temporary file in dir and syncs it, n times, in the same way
// as a record is written. It returns the duration of each write with its sync.
func TrySync(dir string, n int) ([]time.Duration, error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
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
			return took, fmt.Errorf("%s: %w", dir, err)
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}
