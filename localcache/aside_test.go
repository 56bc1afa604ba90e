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

var asideAt = time.Date(2026, 11, 21, 14, 3, 5, 0, time.UTC)

func TestSetAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := mustOpen(t, dir)
	mustSave(t, c, sample())
	if _, err := SetAside(dir, asideAt); !errors.Is(err, ErrLocked) {
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

	a, err := SetAside(dir, asideAt)
	if err != nil || a.Loaded.Status != StatusRecord || a.Loaded.Record.Worker != sample().Worker || a.Backup != path+".reset-20261121T140305Z" {
		t.Fatalf("%+v, %v", a, err)
	}
	backup, err := os.ReadFile(a.Backup)
	if err != nil || !bytes.HasSuffix(backup, was) || !strings.HasPrefix(string(backup), "flaked: a state file that was set aside on 20261121T140305Z") {
		t.Errorf("%d bytes of %d, %v", len(backup), len(was), err)
	}
	if fi, err := os.Stat(a.Backup); err != nil || fi.Mode() != 0o600 {
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
	if _, err := SetAside(dir, asideAt); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("again: %v", err)
	}

	// Neither the copy nor what it was is resumed in the old place.
	for name, text := range map[string][]byte{"the copy": backup, "what it was": was} {
		do(t, os.WriteFile(path, text, 0o600))
		c := mustOpen(t, dir)
		if l := c.Load(); l.Status == StatusRecord && len(l.Changed) == 0 {
			t.Errorf("%s would be resumed: %+v", name, l)
		}
		c.Close()
		do(t, os.Rename(path, link))
	}

	// Nothing to go on from: nothing is done.
	c = mustOpen(t, dir)
	c.Close()
	a, err = SetAside(dir, asideAt)
	if err != nil || a.Backup != "" || a.Loaded.Status != StatusEmpty {
		t.Errorf("empty: %+v, %v", a, err)
	}
	c = mustOpen(t, dir)
	mustSave(t, c, sample())
	do(t, c.Invalidate())
	c.Close()
	a, err = SetAside(dir, asideAt)
	if err != nil || a.Backup != "" || a.Loaded.Status != StatusReleased {
		t.Errorf("released: %+v, %v", a, err)
	}
}

// A copy does not take another's place, and what cannot be read is set aside too.
func TestSetAsideOfRubbish(t *testing.T) {
	for name, text := range map[string]string{"short": "x", "long": strings.Repeat("x", 3<<20), "one of ours, spoilt": strings.Repeat("\xff", FileSize)} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			do(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, stateName)
			for _, want := range []string{path + ".reset-20261121T140305Z", path + ".reset-20261121T140305Z.1"} {
				do(t, os.WriteFile(path, []byte(text), 0o600))
				a, err := SetAside(dir, asideAt)
				if err != nil || a.Loaded.Status != StatusCorrupt || a.Backup != want {
					t.Fatalf("%+v, %v", a, err)
				}
				backup, err := os.ReadFile(a.Backup)
				if _, body, _ := strings.Cut(string(backup), "\n"); err != nil || body != text[:min(len(text), asideMost)] {
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

// Where no copy can be made nothing is lost.
func TestSetAsideWithoutACopy(t *testing.T) {
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
	if _, err := SetAside(dir, asideAt); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if l := mustOpen(t, dir).Load(); l.Status != StatusRecord {
		t.Errorf("%+v", l)
	}
}
