package localcache

import (
	"errors"
	"fmt"
	"io"

	"github.com/flaked/flaked/internal/limits"
)

// Status is what the file turned out to hold.
type Status int

const (
	// StatusEmpty: never written. No record.
	StatusEmpty Status = iota
	// StatusRecord: there is a record.
	StatusRecord
	// StatusReleased: the holding was given up on purpose. The record is for
	// display; it must not be resumed.
	StatusReleased
	// StatusCorrupt: there was something, and nothing of it can be trusted.
	// No record, as if there had never been one: never a guess.
	StatusCorrupt
)

func (s Status) String() string {
	switch s {
	case StatusEmpty:
		return "empty"
	case StatusRecord:
		return "record"
	case StatusReleased:
		return "released"
	case StatusCorrupt:
		return "corrupt"
	}
	return fmt.Sprintf("Status(%d)", int(s))
}

// Loaded is what the state file says.
type Loaded struct {
	Status Status
	// Record is zero unless Status is StatusRecord or StatusReleased.
	Record Record
	// Damaged: one of the two blocks is lost, and Record is the other with M
	// raised by limits.BoundSlack. It is safe to go on from, though M may now be that
	// slack and the node's window ahead of the clock; H, ServedMs and
	// Generation may be behind what they were.
	Damaged bool
	// Changed names the parts of the fingerprint that differ from those of the
	// record (PartMachineID ...). Empty: it is the file that was written.
	Changed []string
	// Reason says in words why Damaged or StatusCorrupt.
	Reason string
}

// clone shares nothing with l.
func (l Loaded) clone() Loaded {
	l.Record = l.Record.clone()
	l.Changed = append([]string(nil), l.Changed...)
	return l
}

// block is one half of the file as it was read: raw, and its record or why
// there is none.
type block struct {
	raw []byte
	rec Record
	err error
}

// image is the file as it was read.
type image struct {
	size   int64
	blocks [2]block
}

// readImage reads both blocks. A block that cannot be read is as lost as a
// damaged one; an error is returned when that goes for both, and for another
// format in either of them.
func readImage(f File) (image, error) {
	var im image
	var err error
	if im.size, err = f.Size(); err != nil {
		return im, fmt.Errorf("localcache: size of the state file: %w", err)
	}
	unreadable := 0
	for i := range im.blocks {
		b := &im.blocks[i]
		b.raw = make([]byte, blockSize)
		n, err := f.ReadAt(b.raw, int64(i)*blockSize)
		if err != nil && !errors.Is(err, io.EOF) {
			unreadable++
			b.err = fmt.Errorf("cannot be read: %w", err)
			continue
		}
		b.rec, b.err = decodeBlock(b.raw[:n])
		if errors.Is(b.err, ErrOtherFormat) {
			return im, b.err
		}
	}
	if unreadable == 2 {
		return im, fmt.Errorf("localcache: read the state file: %w", im.blocks[0].err)
	}
	return im, nil
}

// generation is the highest that can be seen.
func (im image) generation() uint64 {
	var g uint64
	for _, b := range im.blocks {
		if b.err == nil {
			g = max(g, b.rec.Generation)
		}
	}
	return g
}

// best is the index of the block to believe, or -1 and why there is none.
func (im image) best() (int, string) {
	a, b := im.blocks[0], im.blocks[1]
	switch {
	case im.size != FileSize:
		return -1, fmt.Sprintf("the state file has %d bytes, not %d", im.size, FileSize)
	case a.err == nil && b.err == nil && a.rec.Generation == b.rec.Generation:
		// We never write one generation twice: the file was put together.
		return -1, fmt.Sprintf("both blocks of the state file say generation %d", a.rec.Generation)
	case a.err == nil && (b.err != nil || a.rec.Generation > b.rec.Generation):
		return 0, ""
	case b.err == nil:
		return 1, ""
	}
	return -1, fmt.Sprintf("state file: block 0 is bad: %v; block 1 is bad: %v", a.err, b.err)
}

// load judges the image from a file with the given fingerprint.
func (im image) load(fp Fingerprint) Loaded {
	i, reason := im.best()
	if i < 0 {
		blank := errors.Is(im.blocks[0].err, errBlank) && errors.Is(im.blocks[1].err, errBlank)
		if blank && im.size == FileSize {
			return Loaded{Status: StatusEmpty}
		}
		return Loaded{Status: StatusCorrupt, Reason: reason}
	}
	l := Loaded{Status: StatusRecord, Record: im.blocks[i].rec.clone()}
	// A blank partner counts as a lost one: a zeroed block looks like one never
	// written, and only a first Save cut in half ever leaves the latter.
	if err := im.blocks[1-i].err; err != nil {
		l.Damaged = true
		l.Record.M = raise(l.Record.M)
		l.Reason = fmt.Sprintf("block %d of the state file is lost (%v); went on from block %d with M raised by %v", 1-i, err, i, limits.BoundSlack)
	}
	if l.Record.Released {
		l.Status = StatusReleased
	}
	l.Changed = fp.Changed(l.Record.Fingerprint)
	return l
}
