//go:build linux || darwin

package localcache

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var backupAt = time.Date(2026, 11, 21, 14, 3, 5, 0, time.UTC)

func TestRetiredStateIsNeverResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	if _, err := TakeOutOfUse(dir, backupAt); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a node: %v", err)
	}
	c.Close()
	path := filepath.Join(dir, stateName)
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "open")
	old, err := os.Open(path) // somebody still has it open
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()

	a, err := TakeOutOfUse(dir, backupAt)
	if err != nil || a.Loaded.Status != StatusRecord || memoryOf(a.Loaded.Record).Worker != memoryOf(sample()).Worker || a.Path != path+".reset-20261121T140305Z" {
		t.Fatalf("%+v, %v", a, err)
	}
	backup, err := os.ReadFile(a.Path)
	if err != nil || !bytes.HasSuffix(backup, was) || !strings.HasPrefix(string(backup), "flaked: a state file, backed up on 20261121T140305Z. It must not be resumed\n") {
		t.Errorf("%d bytes of %d, %v", len(backup), len(was), err)
	}
	if fi, err := os.Stat(a.Path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	im, err := readImage(osFile{old})
	if err != nil {
		t.Fatal(err)
	}
	if l := im.load(Fingerprint{}); l.Status != StatusReleased {
		t.Errorf("the file that was: %+v", l)
	}
	if _, err := TakeOutOfUse(dir, backupAt); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("again: %v", err)
	}

	// Neither the copy nor the original bytes are resumed in the old place.
	for name, text := range map[string][]byte{"the copy": backup, "what it was": was} {
		do(t, os.WriteFile(path, text, 0o600))
		c := mustOpen(t, dir)
		if l := c.Load(); l.Status == StatusRecord && len(l.Changed) == 0 {
			t.Errorf("%s would be resumed: %+v", name, l)
		}
		c.Close()
		do(t, os.Rename(path, link))
	}

	// TakeOutOfUse does nothing to an empty or released state.
	c = mustOpen(t, dir)
	c.Close()
	a, err = TakeOutOfUse(dir, backupAt)
	if err != nil || a.Path != "" || a.Loaded.Status != StatusEmpty {
		t.Errorf("empty: %+v, %v", a, err)
	}
	c = mustOpen(t, dir)
	mustSave(t, c, sample())
	do(t, c.Invalidate())
	c.Close()
	a, err = TakeOutOfUse(dir, backupAt)
	if err != nil || a.Path != "" || a.Loaded.Status != StatusReleased {
		t.Errorf("released: %+v, %v", a, err)
	}
}

// A new copy does not replace an older one, and an unreadable file is set aside too.
func TestCorruptStateIsBackedUpToo(t *testing.T) {
	for name, text := range map[string]string{"short": "x", "long": strings.Repeat("x", 3<<20), "one of ours, spoilt": strings.Repeat("\xff", FileSize)} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			do(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, stateName)
			for _, want := range []string{path + ".reset-20261121T140305Z", path + ".reset-20261121T140305Z.1"} {
				do(t, os.WriteFile(path, []byte(text), 0o600))
				a, err := TakeOutOfUse(dir, backupAt)
				if err != nil || a.Loaded.Status != StatusCorrupt || a.Path != want {
					t.Fatalf("%+v, %v", a, err)
				}
				backup, err := os.ReadFile(a.Path)
				if _, body, _ := strings.Cut(string(backup), "\n"); err != nil || body != text[:min(len(text), maxBackup)] {
					t.Errorf("%d bytes, %v", len(backup), err)
				}
			}
			c := mustOpen(t, dir)
			if l := c.Load(); l.Status != StatusEmpty {
				t.Errorf("%+v", l)
			}
		})
	}
}

// If TakeOutOfUse cannot make a copy, it leaves the state as it is.
func TestStateStaysIfTheBackupFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	c.Close()
	for i := range 101 {
		name := filepath.Join(dir, stateName+".reset-20261121T140305Z")
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		do(t, os.WriteFile(name, nil, 0o600))
	}
	if _, err := TakeOutOfUse(dir, backupAt); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if l := mustOpen(t, dir).Load(); l.Status != StatusRecord {
		t.Errorf("%+v", l)
	}
}

func TestReadAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := ReadBackups(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	c := mustOpen(t, dir)
	if found, err := ReadBackups(dir); err != nil || len(found) != 0 {
		t.Errorf("none: %+v, %v", found, err)
	}
	mustSave(t, c, sample())
	c.Close()
	if _, err := TakeOutOfUse(dir, backupAt); err != nil {
		t.Fatal(err)
	}
	later := sample().with(func(m *memory) { m.Worker++ })
	c = mustOpen(t, dir)
	mustSave(t, c, later)
	c.Close()
	path := filepath.Join(dir, stateName)
	text, err := os.ReadFile(path)
	do(t, err)
	text[100] ^= 1 // one of the two blocks is lost
	do(t, os.WriteFile(path, text, 0o600))
	if _, err := TakeOutOfUse(dir, backupAt.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	do(t, os.WriteFile(path+".reset-9", []byte("a line\nrubbish"), 0o600))
	do(t, os.WriteFile(path+".reset-99", nil, 0o600))

	found, err := ReadBackups(dir)
	if err != nil || len(found) != 4 {
		t.Fatalf("%+v, %v", found, err)
	}
	if found[0].Copied || !found[2].Copied {
		t.Errorf("copies: %+v", found)
	}
	if l := found[0].Loaded; l.Status != StatusRecord || l.Damaged || memoryOf(l.Record) != memoryOf(sample()) || l.Record.ReservedUntil != sample().ReservedUntil {
		t.Errorf("the first: %+v", l)
	}
	if l := found[1].Loaded; l.Status != StatusRecord || !l.Damaged || memoryOf(l.Record) != memoryOf(later) || l.Record.ReservedUntil <= later.ReservedUntil {
		t.Errorf("the damaged one: %+v", l)
	}
	for _, a := range found[2:] {
		if a.Loaded.Status != StatusCorrupt {
			t.Errorf("%s: %+v", a.Path, a.Loaded)
		}
	}
}

// A copy that is written back after Remove is another file, and is not resumed.
func TestCopyWrittenBackAfterRemoveIsNotResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	path := filepath.Join(dir, stateName)
	was, err := os.ReadFile(path)
	do(t, err)
	do(t, c.Invalidate())
	do(t, c.Remove())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if err := c.Remove(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("again: %v", err)
	}
	do(t, os.WriteFile(path, was, 0o600)) // while the first still has its file open
	if err := c.Remove(); !errors.Is(err, ErrUnsafeFile) {
		t.Errorf("another file: %v", err)
	}
	do(t, c.Close())
	if err := c.Remove(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	again := mustOpen(t, dir)
	if l := again.Load(); l.Status != StatusRecord || len(l.Changed) == 0 {
		t.Errorf("a copy that was written back would be resumed: %+v", l)
	}
}
