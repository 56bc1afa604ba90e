package localcache

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/flaked/flaked/internal/testkit/memfile"
)

// TestBitFlipNeverLowersTheBound flips every bit in turn. No flip may yield a record that was
// not saved, or an ReservedUntil below the last one saved.
func TestBitFlipNeverLowersTheBound(t *testing.T) {
	image, want := saved(t)
	older := want
	older.ReservedUntil, older.Generation = 100_000, want.Generation-1
	newest := 0 // the block that carries want
	if l, _ := decodeBlock(image[blockSize:]); l.Generation == want.Generation {
		newest = 1
	}
	b := bytes.Clone(image)
	for bit := range FileSize * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		l := mustNew(t, memfile.New(b)).Load()
		exp := want
		if bit/8/blockSize == newest {
			exp = older
		}
		exp.ReservedUntil = raise(exp.ReservedUntil)
		if l.Status != StatusRecord || !l.Damaged || l.Reason == "" || !reflect.DeepEqual(l.Record, exp) {
			t.Fatalf("bit %d: %+v\nwant %+v", bit, l, exp)
		}
		if l.Record.ReservedUntil < want.ReservedUntil {
			t.Fatalf("bit %d: M %d below %d", bit, l.Record.ReservedUntil, want.ReservedUntil)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

func TestTruncation(t *testing.T) {
	image, _ := saved(t)
	for n := range FileSize {
		if l := reload(t, image[:n:n]); l.Status != StatusCorrupt || l.Reason == "" ||
			!reflect.DeepEqual(l.Record, Record{}) {
			t.Fatalf("%d bytes: %+v", n, l)
		}
	}
	for _, n := range []int{0, 1, 100, blockSize - 1, blockSize, blockSize + 1, FileSize - 1, FileSize + 1,
		3 * blockSize} {
		im := make([]byte, n)
		copy(im, image)
		f := memfile.New(im)
		c := mustNew(t, f)
		if l := c.Load(); l.Status != StatusCorrupt {
			t.Fatalf("%d bytes: %+v", n, l)
		}
		r := sample()
		r = r.with(func(m *memory) { m.Node = "n-2" })
		mustSave(t, c, r)
		if got := len(f.Disk()); got != FileSize {
			t.Errorf("%d bytes became %d", n, got)
		}
		if l := reload(t, f.Disk()); l.Status != StatusRecord || l.Damaged || memoryOf(l.Record).Node != "n-2" {
			t.Errorf("%d bytes, saved: %+v", n, l)
		}
	}
}

func TestOneLostBlockRaisesTheBound(t *testing.T) {
	image, want := saved(t)
	blank := make([]byte, blockSize)
	junk := bytes.Repeat([]byte{0xa5}, blockSize)
	a, b := image[:blockSize], image[blockSize:]
	tests := []struct {
		name          string
		first, second []byte
		status        Status
		damaged       bool
	}{
		{"both whole", a, b, StatusRecord, false},
		{"blank, blank", blank, blank, StatusEmpty, false},
		{"blank, junk", blank, junk, StatusCorrupt, false},
		{"junk, blank", junk, blank, StatusCorrupt, false},
		{"junk, junk", junk, junk, StatusCorrupt, false},
		{"whole, junk", a, junk, StatusRecord, true},
		{"junk, whole", junk, b, StatusRecord, true},
		// Zeros are damage too: the block may well have been written.
		{"whole, blank", a, blank, StatusRecord, true},
		{"blank, whole", blank, b, StatusRecord, true},
		{"exchanged", b, a, StatusRecord, false},
		{"the same twice", a, a, StatusCorrupt, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := memfile.New(append(bytes.Clone(tt.first), tt.second...))
			c := mustNew(t, f)
			l := c.Load()
			if l.Status != tt.status || l.Damaged != tt.damaged {
				t.Fatalf("%+v", l)
			}
			if (l.Reason != "") != (tt.damaged || tt.status == StatusCorrupt) {
				t.Errorf("reason %q", l.Reason)
			}
			if l.Status == StatusRecord && l.Record.ReservedUntil < want.ReservedUntil {
				t.Errorf("M %d below %d", l.Record.ReservedUntil, want.ReservedUntil)
			}
			// After a Save both blocks are valid, whatever was lost before.
			r := sample()
			r.ReservedUntil = 200_000
			mustSave(t, c, r)
			if l := reload(t, f.Disk()); l.Status != StatusRecord || l.Damaged ||
				l.Record.ReservedUntil != r.ReservedUntil {
				t.Errorf("after Save: %+v", l)
			}
		})
	}
}
