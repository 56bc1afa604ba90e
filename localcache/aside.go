//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Aside is a record that was set aside.
type Aside struct {
	// Loaded is what the directory held. Backup is empty where that was nothing
	// that a node would have gone on from.
	Loaded Loaded
	Backup string
}

// asideMost bounds what is copied of a file that is no state file of ours.
const asideMost = 1 << 20

// SetAside ends for good what a state directory holds: a node started there is a
// new one. A copy of the state file is left beside it, for people: behind a line
// of text, so that it is no state file by whatever name. Then the file itself is
// made to say that it was given up, durably, and deleted: one that comes in its
// place is another file, and no copy of an older one passes for it.
//
// The error is fs.ErrNotExist where there is no state file, and otherwise as that
// of Open. Where copying fails nothing has been changed.
func SetAside(dir string, now time.Time) (Aside, error) {
	dir = filepath.Clean(dir)
	d, err := openDir(dir)
	if err != nil {
		return Aside{}, err
	}
	defer d.Close()
	path := filepath.Join(dir, stateName)
	f, err := openat(int(d.Fd()), stateName, path, unix.O_RDWR)
	if errors.Is(err, unix.ELOOP) {
		return Aside{}, fmt.Errorf("%w: %s is a symbolic link", ErrUnsafeFile, path)
	}
	if err != nil {
		return Aside{}, fmt.Errorf("localcache: open the state file: %w", err)
	}
	c, err := openLocked(d, f, false)
	if err != nil {
		f.Close()
		return Aside{}, err
	}
	defer c.Close()
	a := Aside{Loaded: c.Load()}
	if a.Loaded.Status == StatusEmpty || a.Loaded.Status == StatusReleased {
		return a, nil
	}
	if a.Backup, err = backUp(d, f, now); err != nil {
		return a, err
	}
	if err := c.Invalidate(); err != nil {
		return a, err
	}
	if err := unix.Unlinkat(int(d.Fd()), stateName, 0); err != nil {
		return a, fmt.Errorf("localcache: delete %s: %w", path, err)
	}
	if err := d.Sync(); err != nil {
		return a, fmt.Errorf("localcache: sync the state directory: %w", err)
	}
	return a, nil
}

// backUp copies the state file f in d and returns the copy's path.
func backUp(d, f *os.File, now time.Time) (path string, err error) {
	stamp := now.UTC().Format("20060102T150405Z")
	for i := 0; ; i++ {
		name := stateName + ".reset-" + stamp
		if i > 0 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		path = filepath.Join(d.Name(), name)
		to, err := openat(int(d.Fd()), name, path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("localcache: keep a copy of the state file: %w", err)
		}
		if err := copyTo(to, f, stamp); err != nil {
			to.Close()
			unix.Unlinkat(int(d.Fd()), name, 0)
			return "", fmt.Errorf("localcache: keep a copy of the state file in %s: %w", path, err)
		}
		if err := d.Sync(); err != nil {
			return "", fmt.Errorf("localcache: sync the state directory: %w", err)
		}
		return path, nil
	}
}

func copyTo(to, from *os.File, stamp string) error {
	if _, err := fmt.Fprintf(to, "flaked: a state file that was set aside on %s, as it was; never to be resumed\n", stamp); err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, asideMost)); err != nil {
		return err
	}
	if err := to.Sync(); err != nil {
		return err
	}
	return to.Close()
}
