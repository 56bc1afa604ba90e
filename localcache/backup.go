//go:build linux || darwin

package localcache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// maxBackup bounds how many bytes of the file are copied, because the file may be any file.
const maxBackup = 1 << 20

// TakeOutOfUse takes the state in dir out of use for good: a node that starts there afterwards
// is a new one. TakeOutOfUse first leaves a copy of the state file in dir, for people. The copy
// begins with a line of text, so it is not a valid state file under any name. Then TakeOutOfUse
// marks the state file as released, durably, and deletes it. A file that takes its place
// later has another fingerprint, so a copy of an older state is not resumed.
//
// TakeOutOfUse changes nothing if the state is empty or released, or if copying fails. The
// error is fs.ErrNotExist if there is no state file, and otherwise as for Open.
func TakeOutOfUse(dir string, now time.Time) (Backup, error) {
	dir = filepath.Clean(dir)
	d, err := openDir(dir)
	if err != nil {
		return Backup{}, err
	}
	defer d.Close()
	path := filepath.Join(dir, stateName)
	f, err := openat(int(d.Fd()), stateName, path, unix.O_RDWR)
	if errors.Is(err, unix.ELOOP) {
		return Backup{}, fmt.Errorf("%w: %s is a symbolic link", ErrUnsafeFile, path)
	}
	if err != nil {
		return Backup{}, fmt.Errorf("open the state file: %w", err)
	}
	c, err := openLocked(d, f, false)
	if err != nil {
		f.Close()
		return Backup{}, err
	}
	defer c.Close()
	a := Backup{Loaded: c.Load()}
	a.Copied = len(a.Loaded.Changed) > 0
	if a.Loaded.Status == StatusEmpty || a.Loaded.Status == StatusReleased {
		return a, nil
	}
	if a.Path, err = backUp(d, f, a.Copied, now); err != nil {
		return a, err
	}
	if err := c.Invalidate(); err != nil {
		return a, err
	}
	return a, remove(d, f)
}

// backupPrefix is the beginning of the names of the copies that TakeOutOfUse leaves.
const backupPrefix = stateName + ".reset-"

// ReadBackups reads the copies that TakeOutOfUse has left in a state directory, sorted by name.
// The names contain the time of the copy. A copy whose content is not valid has
// StatusCorrupt. The error is fs.ErrNotExist if the directory does not exist.
func ReadBackups(dir string) ([]Backup, error) {
	names, err := filepath.Glob(filepath.Join(filepath.Clean(dir), backupPrefix+"*"))
	if err == nil && names == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("list the backups of the state file: %w", err)
	}
	slices.Sort(names)
	var found []Backup
	for _, name := range names {
		a, err := readCopy(name)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, nil
}

// readCopy reads one copy: a line of text, followed by the bytes of the state file.
func readCopy(name string) (Backup, error) {
	f, err := openat(unix.AT_FDCWD, name, name, unix.O_RDONLY)
	if err != nil {
		return Backup{}, fmt.Errorf("open the backup of a state file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 2*maxBackup))
	if err != nil {
		return Backup{}, fmt.Errorf("read the backup of a state file: %w", err)
	}
	line, image, _ := bytes.Cut(text, []byte("\n"))
	a := Backup{Path: name, Copied: !bytes.HasPrefix(line, []byte(textOfOriginal))}
	im, err := readBlocks(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		a.Loaded = Loaded{Status: StatusCorrupt, Reason: err.Error()}
	} else {
		a.Loaded = im.load(Fingerprint{})
	}
	return a, nil
}

// backUp copies the state file f in d and returns the copy's path.
func backUp(d, f *os.File, copied bool, now time.Time) (path string, err error) {
	stamp := now.UTC().Format("20060102T150405Z")
	for i := 0; ; i++ {
		name := backupPrefix + stamp
		if i > 0 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		path = filepath.Join(d.Name(), name)
		to, err := openat(int(d.Fd()), name, path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("back up the state file: %w", err)
		}
		if err := copyTo(to, f, copied, stamp); err != nil {
			to.Close()
			unix.Unlinkat(int(d.Fd()), name, 0)
			return "", fmt.Errorf("back up the state file to %s: %w", path, err)
		}
		if err := d.Sync(); err != nil {
			return "", fmt.Errorf("sync the state directory: %w", err)
		}
		return path, nil
	}
}

// Each copy begins with one of these texts. readCopy sets Copied by them.
const (
	textOfOriginal = "flaked: a state file"
	textOfCopy     = "flaked: a copy of another node's state file"
)

func copyTo(to, from *os.File, copied bool, stamp string) error {
	what := textOfOriginal
	if copied {
		what = textOfCopy
	}
	if _, err := fmt.Fprintf(to, "%s, backed up on %s. It must not be resumed\n", what, stamp); err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, maxBackup)); err != nil {
		return err
	}
	if err := to.Sync(); err != nil {
		return err
	}
	return to.Close()
}
