package memfile

import (
	"errors"
	"io"
	"strings"
	"testing"
)

var errDisk = errors.New("input/output error")

func TestFile(t *testing.T) {
	f := New(make([]byte, 2048))
	if _, err := f.WriteAt([]byte(strings.Repeat("x", 1500)), 100); err != nil {
		t.Fatal(err)
	}
	g := f.Clone()
	f.Survives = func(off int64) bool { return off == 100 || off == 1024 }
	f.Crash()
	for at, want := range map[int]byte{99: 0, 100: 'x', 511: 'x', 512: 0, 1023: 0, 1024: 'x', 1535: 'x', 1536: 0} {
		if f.Disk()[at] != want {
			t.Errorf("byte %d is %q, want %q", at, f.Disk()[at], want)
		}
	}
	if err := g.Datasync(); err != nil || g.Disk()[1599] != 'x' || g.Disk()[1600] != 0 {
		t.Errorf("synced: %v", err)
	}

	// Landed gets the durable bytes whenever they may have changed.
	var landed []byte
	f.Landed = func(disk []byte) { landed = append(landed, disk[0]) }
	f.WriteAt([]byte("1"), 0)
	if err := f.Datasync(); err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("2"), 0)
	f.Crash()
	f.Damage(0, []byte("3"))
	if string(landed) != "113" {
		t.Errorf("landed %q", landed)
	}

	// The next sync does not make up for a failed one.
	h := New(nil)
	h.FailSyncs = func() error { return errDisk }
	h.WriteAt([]byte("lost"), 0)
	if err := h.Sync(); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	h.FailSyncs = nil
	if err := h.Sync(); err != nil || h.Disk()[0] != 0 {
		t.Errorf("disk %q, %v", h.Disk()[:4], err)
	}
	p := make([]byte, 4)
	if n, err := h.ReadAt(p, 0); n != 4 || err != nil || string(p) != "lost" {
		t.Errorf("cache %q, %v", p, err)
	}
	if n, err := h.ReadAt(p, blankSize-2); n != 2 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	h.FailWrites = func(int64, int) (int, error) { return 2, errDisk }
	if n, err := h.WriteAt([]byte("abcd"), 8); n != 2 || !errors.Is(err, errDisk) {
		t.Errorf("failed write: %d, %v", n, err)
	}
}
