package localcache

import (
	"errors"
	"fmt"
	"sync"

	"go.uber.org/atomic"
)

// Why no single fault loses the record.
//
// The faults are these. A power cut or a kill at any moment leaves the block being written
// old, new or torn. A write or sync that fails leaves its block in any of these states,
// too. One block may be damaged at any time: flipped bits, garbage or zeros.
//
// The reserved bound of a record (ReservedUntil) counts once the Save of that record has
// returned nil. A caller may lower the bound at a clean stop. It has then given up all
// timestamps at or above the new bound when it calls Save, not when Save returns.
//
// A claim is one node's claim on one slot. A record is a safe stand-in for another one if it is of the same claim,
// claims nothing that was withdrawn, and its reserved bound plus the slack is at least every reserved bound that has
// counted and was not given up. The slack is limits.BoundSlack.
//
// Invariant, at all times: each block, if it is found alone, is a safe stand-in for the
// last record for which Save returned nil, or is a record that a later Save has tried.
//
// The invariant holds for these reasons:
//
//  1. If the file holds a record, Save overwrites a block only while the other block is known
//     to be durable: this process has written and synced it without error. So the block that
//     may be torn or in doubt is always the same one. Its neighbour holds the record of the
//     last Save that returned nil, or of a later one. After a power cut that neighbour is
//     found, alone or beside a valid newer block.
//  2. Save writes one block only, and leaves its neighbour as it is, when the new record
//     *follows* the neighbour's (Record.follows): only ReservedUntil, LeaseUntil, ServedMs,
//     LastBeat and Journal differ, LeaseUntil has not fallen, and ReservedUntil has risen by 0 to the slack. The
//     neighbour is then a safe stand-in. Its reserved bound plus the slack is at least the
//     new one, and so at least every one that counted before, because the reserved bound
//     never falls within a chain of such Saves.
//  3. In all other cases (another payload, the reserved bound up by more than the slack or
//     down at a stop, the lease bound down, a release) Save writes both blocks before it
//     returns nil, so that no superseded record is left. Between the two writes the newer
//     block holds a record that was tried, and the older block is unchanged.
//
// A lower reserved bound needs no rule of its own. By 3 both blocks have it when Save returns. Until then the bound of
// either block is at least the lower one, and the caller no longer claims any timestamp above that.
//
// A block that is found alone may be the older one of the pair, so load adds the slack to its reserved bound. Zeros in
// the lost block do not prove that it was never written. Two valid blocks need no slack: the higher generation is the
// last Save that returned nil, or one tried since.
//
// After a restart no block is known to be durable. A failed sync leaves its block readable from the page cache, and a
// later sync then returns nil without having written it. So the first Save rewrites the block that it goes on from,
// byte for byte, before it overwrites the other block. If that write is torn, the bytes are still the same. If the disk
// held other bytes there, then the other block is the durable one, and it is intact.

// ErrClosed: the StateFile was closed.
var ErrClosed = errors.New("closed")

// StateFile is an open state file. It is safe for concurrent use. Save, Invalidate, Remove and
// Close wait for each other, and therefore for a disk that stalls. Load never waits.
type StateFile struct {
	loaded atomic.Pointer[Loaded]
	dir    *Dir

	// mu serialises the writers and guards the fields below. A writer holds mu while the
	// disk works, so Load must not take it.
	mu     sync.Mutex
	f      File
	fp     Fingerprint
	closed bool
	usable bool // the file has its size, and is blank or holds a record
	// durable is the index of the block that the next write must not touch, -1 while there
	// is none. known is its record.
	durable int
	known   Record
	// unproven holds the bytes of the durable block as they were read. It is nil once this
	// process has written that block.
	unproven []byte
	// generation is the generation of the last write that was tried.
	generation uint64
}

// New reads the state file and writes nothing. The StateFile owns f, and Close closes it. If New returns an error
// (ErrOtherFormat, or the file cannot be read), f stays with the caller. fp is the present fingerprint of the file.
// Save stores it with each record, and adds what the record that was found knows of the same file.
func New(f File, fp Fingerprint) (*StateFile, error) {
	im, err := readImage(f)
	if err != nil {
		return nil, err
	}
	l := im.load(fp)
	if l.Status == StatusRecord && len(l.Changed) == 0 {
		fp = fp.orKnown(l.Record.Fingerprint)
	}
	s := &StateFile{f: f, fp: fp, usable: l.Status != StatusCorrupt, generation: im.generation()}
	s.durable, _ = im.best()
	if s.durable >= 0 {
		b := im.blocks[s.durable]
		s.known, s.unproven = b.rec, b.raw
	}
	s.loaded.Store(&l)
	return s, nil
}

// Load returns the record that New found, or the last one saved since. It does no I/O.
//
// The record that New found may come from a Save or Invalidate that never returned. The caller goes on from it, but
// only a Save of this StateFile makes it durable. After StatusReleased, call Invalidate again before giving the slot
// away.
func (s *StateFile) Load() Loaded { return s.loaded.Load().clone() }

// Save makes r durable and returns its generation. The caller may rely on r only if the error is nil. After an error a
// restart may find r or the record before it. The caller may then call Save again, with r or with another record.
//
// Before a Save with a lower ReservedUntil, the caller must have given up all timestamps at or
// above the new ReservedUntil.
//
// The usual Save writes 4 KiB in place and syncs once. Unless r follows the record before it (see Record.follows), Save
// syncs twice. The first Save after a restart syncs once more. Save works on a full disk where files are overwritten in
// place (ext4, XFS, tmpfs, but not btrfs or ZFS).
func (s *StateFile) Save(r Record) (generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save(r)
}

// Invalidate marks both blocks as Released, so that not even damage to one of them brings
// the old claim back. The caller may give the slot away only if Invalidate returns nil.
func (s *StateFile) Invalidate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known // zero while there is none
	r.Released = true
	_, err := s.save(r)
	return err
}

// Dir returns the open directory of the state file, until Close. It is nil if New has made the StateFile.
func (s *StateFile) Dir() *Dir { return s.dir }

// Remove deletes the file. Call it after Invalidate. A copy of the file that is written back into the directory later
// is another file, and is not resumed. Remove returns ErrUnsafeFile if another file has taken the file's place.
func (s *StateFile) Remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.f.Remove()
}

// Close closes the file, which releases the lock. It writes nothing.
func (s *StateFile) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.f.Close(); err != nil {
		return fmt.Errorf("close the state file: %w", err)
	}
	return nil
}

func (s *StateFile) save(r Record) (uint64, error) {
	if s.closed {
		return 0, ErrClosed
	}
	r = r.clone()
	r.Fingerprint = s.fp
	body, err := encodeBody(r)
	if err != nil {
		return 0, err
	}
	if err := s.makeBlank(); err != nil {
		return 0, err
	}
	if err := s.prove(); err != nil {
		return 0, err
	}

	first, both := 0, true
	if s.durable >= 0 {
		first, both = 1-s.durable, !r.follows(s.known)
	}
	if err := s.write(first, body, r); err != nil {
		return 0, err
	}
	if both {
		if err := s.write(1-first, body, r); err != nil {
			return 0, err
		}
	}
	l := Loaded{Status: StatusRecord, Record: s.known.clone()}
	if r.Released {
		l.Status = StatusReleased
	}
	s.loaded.Store(&l)
	return s.generation, nil
}

// write makes block i durable with the next generation.
func (s *StateFile) write(i int, body []byte, r Record) error {
	s.generation++
	if err := s.writeBlock(i, sealBlock(body, s.generation)); err != nil {
		return err
	}
	r.Generation = s.generation
	s.durable, s.known = i, r
	return nil
}

// prove rewrites the block that New has read, so that the block is known to be durable.
func (s *StateFile) prove() error {
	if s.unproven == nil {
		return nil
	}
	if err := s.writeBlock(s.durable, s.unproven); err != nil {
		return err
	}
	s.unproven = nil
	return nil
}

func (s *StateFile) writeBlock(i int, b []byte) error {
	if _, err := s.f.WriteAt(b, int64(i)*blockSize); err != nil {
		return fmt.Errorf("write block %d: %w", i, err)
	}
	if err := s.f.Datasync(); err != nil {
		return fmt.Errorf("sync block %d: %w", i, err)
	}
	return nil
}

// makeBlank turns a corrupt file into a blank file of the right size. Writing a record over
// the damage is not enough. A torn write can repair the damaged sector by chance. Then the
// old record, which counted as lost, stands beside the new one with an unknown generation.
func (s *StateFile) makeBlank() error {
	if s.usable {
		return nil
	}
	if err := s.f.Truncate(FileSize); err != nil {
		return fmt.Errorf("restore the size of the state file: %w", err)
	}
	if err := preallocate(s.f); err != nil {
		return err
	}
	s.usable = true
	return nil
}
