package localcache

import (
	"bytes"
	"testing"

	"github.com/flaked/flaked/internal/testkit/memfile"
)

func TestDamage(t *testing.T) {
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
		{"nothing", nil, nil, StatusCorrupt, false},
		{"the first half of the first block", a[:blockSize/2], nil, StatusCorrupt, false},
		{"the first block", a, nil, StatusCorrupt, false},
		{"all but a byte", a, b[:blockSize-1], StatusCorrupt, false},
		{"a byte too many", a, append(bytes.Clone(b), 0), StatusCorrupt, false},
		// Zeros are damage too: the block may well have been written.
		{"whole, blank", a, blank, StatusRecord, true},
		{"blank, whole", blank, b, StatusRecord, true},
		{"exchanged", b, a, StatusRecord, false},
		{"the same twice", a, a, StatusCorrupt, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := memfile.New(append(append([]byte{}, tt.first...), tt.second...))
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
			// After a Save the file is whole, whatever was lost before.
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
