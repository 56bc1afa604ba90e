//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
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
