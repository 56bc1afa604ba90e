package localcache

import (
	"errors"
	"fmt"
	"io"

	"github.com/flaked/flaked/internal/core/limits"
)

// Status is the kind of content that the state file holds.
type Status string

const (
	// StatusEmpty: the file was never written. There is no record.
	StatusEmpty Status = "empty"
	// StatusRecord: there is a record.
	StatusRecord Status = "record"
	// StatusReleased: the claim was given up on purpose. The record is only for display and must not be resumed.
	StatusReleased Status = "released"
	// StatusCorrupt: the file has content, but none of it can be trusted. There is no
	// record, and the package does not guess one.
	StatusCorrupt Status = "corrupt"
)

// Loaded is the content of the state file.
type Loaded struct {
	Status Status
	// Record is zero unless Status is StatusRecord or StatusReleased.
	Record Record
	// Damaged reports whether one of the two blocks is lost. Record is then the other block's,
	// with ReservedUntil raised by limits.BoundSlack. A node may go on from that record. Its
	// ReservedUntil may lie ahead of the clock by the slack plus the node's reserve. Its
	// LeaseUntil, ServedMs and Generation may be older than those that were lost.
	Damaged bool
	// Changed names the parts of the file's fingerprint (PartMachineID ...) that show that the file
	// was copied or moved. It is empty if this is the file that the record was written to.
	Changed []string
	// Reason explains Damaged or StatusCorrupt in words. Otherwise it is "".
	Reason string
}

// clone returns a copy that shares no memory with l.
func (l Loaded) clone() Loaded {
	l.Record = l.Record.clone()
	l.Changed = append([]string(nil), l.Changed...)
	return l
}

// image is the file as it was read.
type image struct {
	size   int64
	blocks [2]block
}

// readImage reads both blocks of f. A block that cannot be read counts as damaged. readImage returns an error
// if neither block can be read, and ErrOtherFormat if either has another format.
func readImage(f File) (image, error) {
	size, err := f.Size()
	if err != nil {
		return image{}, fmt.Errorf("size of the state file: %w", err)
	}
	im := image{size: size}
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
		return im, fmt.Errorf("read the state file: %w", im.blocks[0].err)
	}
	return im, nil
}

// generation returns the highest generation of the valid blocks, 0 if there is none.
func (im image) generation() uint64 {
	var g uint64
	for _, b := range im.blocks {
		if b.err == nil {
			g = max(g, b.rec.Generation)
		}
	}
	return g
}

// best returns the index of the block to go on from, or -1 and the reason why there is none.
func (im image) best() (int, string) {
	a, b := im.blocks[0], im.blocks[1]
	switch {
	case im.size != FileSize:
		return -1, fmt.Sprintf("the state file has %d bytes, not %d", im.size, FileSize)
	case a.err == nil && b.err == nil && a.rec.Generation == b.rec.Generation:
		// A StateFile never gives two blocks the same generation, so somebody assembled this file.
		return -1, fmt.Sprintf("both blocks of the state file have generation %d", a.rec.Generation)
	case a.err == nil && (b.err != nil || a.rec.Generation > b.rec.Generation):
		return 0, ""
	case b.err == nil:
		return 1, ""
	}
	return -1, fmt.Sprintf("both blocks of the state file are bad. Block 0: %v. Block 1: %v", a.err, b.err)
}

// load returns the content of the image, which was read from a file with the fingerprint fp.
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
	// A blank neighbour counts as lost. A zeroed block looks like one that was never
	// written, and only a first Save that was cut short leaves a block unwritten.
	if err := im.blocks[1-i].err; err != nil {
		l.Damaged = true
		//mutant:d-lone-copy-as-it-is by sim -> _ = raise
		l.Record.ReservedUntil = raise(l.Record.ReservedUntil)
		l.Reason = fmt.Sprintf("block %d of the state file is lost (%v). Continued from block %d with the reserved "+
			"bound raised by %v", 1-i, err, i, limits.BoundSlack)
	}
	if l.Record.Released {
		l.Status = StatusReleased
	}
	l.Changed = fp.Changed(l.Record.Fingerprint)
	return l
}
