package localcache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Why one fault costs nothing.
//
// The faults are: a power cut or kill at any moment, which leaves the block
// being written old, new or torn; a write or sync that fails, after which the
// block may be any of these too; and damage to one block at any time, be it
// flipped bits, garbage or zeros. An M counts once the Save that carried it
// returned nil. A caller may lower M (a clean stop), and gives up what is at or
// above the new one when it calls Save, not when Save returns.
//
// Invariant, at all times: each block, were it found alone, is a safe stand-in
// for the last record for which Save returned nil, or is a record tried since
// then. A safe stand-in is of the same holding, claims nothing that was
// withdrawn, and its M + slack is at least every M that counted. The slack is
// limits.BoundSlack.
//
// It holds because
//
//  1. where there is a record at all, a block is overwritten only while the
//     other is known to be durable, that is, written and synced without error
//     by this process. What is torn or in doubt is therefore always the same
//     block, and its neighbour is the record of the last Save that returned nil
//     or of a later one. At a power cut that neighbour is found, alone or
//     beside a valid newer one.
//  2. Save writes one block only, leaving the old neighbour, when the new
//     record *follows* it (Record.follows): equal but for M, H and ServedMs,
//     M risen by 0 to the slack. The neighbour is then a safe stand-in by
//     definition: its M + slack >= the new M, and so >= all that counted
//     before, as within such a chain M never goes down.
//  3. All else (another payload, a longer stride of M, M down at a stop, a
//     release) is written to both blocks before Save returns nil, so no
//     superseded record is left. Between the two writes the newer block is a
//     record tried, and the older one what it was.
//
// M down needs no rule of its own: by 3 both blocks carry the lower M when Save
// returns, and until then either block's M is at least the lower one, which is
// all the caller still claims.
//
// A block found alone may be the older of a pair, hence + slack; that the lost
// one is all zeros is no proof that it was never written. Two valid blocks need
// no raise: the higher generation is the last Save that returned nil or one
// tried since.
//
// After a restart nothing is known to be durable: a sync that failed leaves its
// block readable from the page cache, and a later sync then returns nil without
// having written it. So the first Save writes the block it believes in once
// more, byte for byte, before it touches the other. Torn, equal bytes are the
// same bytes; and if the disk held something else, the other block still is
// the one that was durable.

// ErrClosed: the Cache was closed.
var ErrClosed = errors.New("localcache: closed")

// Cache is an open state file. It may be used by several goroutines: Save,
// Invalidate and Close wait for each other, and so for a disk that stalls; Load
// waits for nothing.
type Cache struct {
	loaded atomic.Pointer[Loaded]

	// mu serialises the writers and guards what follows. It is held while the
	// disk works, hence Load does not take it.
	mu     sync.Mutex
	f      File
	fp     Fingerprint
	closed bool
	usable bool // the file has its size, and is blank or holds a record
	// durable is the block never to be overwritten next, -1 while there is none;
	// known is its record.
	durable int
	known   Record
	// unproven is the durable block as it was read, until this process has
	// written it itself; nil after that.
	unproven []byte
	// generation is that of the last write tried.
	generation uint64
}

// New reads the state file. It writes nothing, and takes f over: Close closes
// it. On an error (ErrOtherFormat, or neither block can be read) f is left to
// the caller. fp is what the file is to be known by from now on.
func New(f File, fp Fingerprint) (*Cache, error) {
	im, err := readImage(f)
	if err != nil {
		return nil, err
	}
	l := im.load(fp)
	c := &Cache{f: f, fp: fp, usable: l.Status != StatusCorrupt, generation: im.generation()}
	c.durable, _ = im.best()
	if c.durable >= 0 {
		b := im.blocks[c.durable]
		c.known, c.unproven = b.rec, b.raw
	}
	c.loaded.Store(&l)
	return c, nil
}

// Load returns what New found, or the last record saved since. It does no I/O.
//
// What was found may be the work of a Save or Invalidate that never returned:
// it is what to go on from, but only a Save of our own makes it durable. After
// StatusReleased, Invalidate again before the slot is given away.
func (c *Cache) Load() Loaded { return c.loaded.Load().clone() }

// Save makes r durable and returns its generation. Only when the error is nil
// may anything be built on r; otherwise a restart may find r or what was there
// before, and Save may be tried again, with r or another record.
//
// With a lower M than before, the caller must have given up all timestamps from
// that M on before it calls.
//
// The usual call writes 4 KiB in place and syncs once; a change of more than M,
// H and ServedMs costs two syncs, the first Save one more. A full disk does not
// matter where files are overwritten in place (ext4, XFS, tmpfs; not btrfs, ZFS).
func (c *Cache) Save(r Record) (generation uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.save(r)
}

// Invalidate makes both blocks say Released, so that not even damage to one of
// them brings the old holding back. When it returns nil the slot may be given
// away; on an error it must not be.
func (c *Cache) Invalidate() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.known // zero while there is none
	r.Released = true
	_, err := c.save(r)
	return err
}

// TellsMachines reports whether a clone of the file on another machine would be
// noticed.
func (c *Cache) TellsMachines() bool { return c.fp.TellsMachines() }

// Remove deletes the file, after Invalidate: a copy of it that is written back into
// the directory later is another file, and is not resumed.
func (c *Cache) Remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return c.f.Remove()
}

// Close gives the file up and with it the lock. It does not write.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if err := c.f.Close(); err != nil {
		return fmt.Errorf("localcache: close the state file: %w", err)
	}
	return nil
}

func (c *Cache) save(r Record) (uint64, error) {
	if c.closed {
		return 0, ErrClosed
	}
	r = r.clone()
	r.Fingerprint = c.fp
	body, err := encodeBody(r)
	if err != nil {
		return 0, err
	}
	if err := c.restore(); err != nil {
		return 0, err
	}
	if err := c.prove(); err != nil {
		return 0, err
	}

	first, both := 0, true
	if c.durable >= 0 {
		first, both = 1-c.durable, !r.follows(c.known)
	}
	if err := c.write(first, body, r); err != nil {
		return 0, err
	}
	if both {
		if err := c.write(1-first, body, r); err != nil {
			return 0, err
		}
	}
	l := Loaded{Status: StatusRecord, Record: c.known.clone()}
	if r.Released {
		l.Status = StatusReleased
	}
	c.loaded.Store(&l)
	return c.generation, nil
}

// write makes block i durable with the next generation.
func (c *Cache) write(i int, body []byte, r Record) error {
	c.generation++
	if err := c.writeBlock(i, sealBlock(body, c.generation)); err != nil {
		return err
	}
	r.Generation = c.generation
	c.durable, c.known = i, r
	return nil
}

// prove turns the block that was read into one that is known to be durable.
func (c *Cache) prove() error {
	if c.unproven == nil {
		return nil
	}
	if err := c.writeBlock(c.durable, c.unproven); err != nil {
		return err
	}
	c.unproven = nil
	return nil
}

func (c *Cache) writeBlock(i int, b []byte) error {
	if _, err := c.f.WriteAt(b, int64(i)*blockSize); err != nil {
		return fmt.Errorf("localcache: write block %d: %w", i, err)
	}
	if err := c.f.Datasync(); err != nil {
		return fmt.Errorf("localcache: sync block %d: %w", i, err)
	}
	return nil
}

// restore makes a corrupt file a blank one of the right size. It is not enough
// to write over it: a torn write can mend the very sector that was spoilt, and
// a record that had been given up for lost would then stand beside the new one
// with a generation that nobody knew of.
func (c *Cache) restore() error {
	if c.usable {
		return nil
	}
	if err := c.f.Truncate(FileSize); err != nil {
		return fmt.Errorf("localcache: restore the size of the state file: %w", err)
	}
	if err := preallocate(c.f); err != nil {
		return err
	}
	c.usable = true
	return nil
}
