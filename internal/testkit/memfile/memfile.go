// Package memfile has a state file in memory that injects faults, for tests of localcache and
// of nodes.
package memfile

import (
	"cmp"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
)

// File is a localcache.File in memory. It behaves like a disk behind a page cache: written data
// can be read at once, and are durable only after a sync. The hooks inject faults. Set them
// before the file is in use. FailWrites and FailSyncs are called without a lock held, so
// they may block, as on a disk that stalls. Survives and Landed are called with the lock
// held and must not use the file.
//
// Close does nothing. The same File can be given to localcache.New again, as a file that a
// second process opens.
type File struct {
	// FailWrites, if set, is called before every write. If it returns an error, the write
	// fails after its first n bytes.
	FailWrites func(off int64, size int) (n int, err error)
	// FailSyncs, if set, is called before every sync. If it returns an error, the sync
	// fails: of the unsynced data, only the units that Survives selects reach the disk. As
	// on Linux, the data stay readable, and a later sync does not try to write them again.
	FailSyncs func() error
	// Survives reports whether the unit of an unsynced write at offset off reached the disk
	// before a crash or a failed sync. nil means that no unit did.
	Survives func(off int64) bool
	// Unit is the number of bytes that the disk writes as a whole. 0 means 512.
	Unit int64
	// Landed, if set, gets the durable bytes whenever they may have changed. It must not
	// keep or modify them.
	Landed func(disk []byte)
	// Full makes every write that grows the file fail with ENOSPC.
	Full bool

	// mu guards what follows.
	mu      sync.Mutex
	cache   []byte // what a reader sees
	disk    []byte // what a power cut leaves
	pending []memWrite
	removed bool
}

// blankSize is localcache.FileSize. That package's tests use this one, so it cannot be imported.
const blankSize = 2 * 4096

// memWrite is an unsynced write. If data is nil, it is a change of the file's size to off.
type memWrite struct {
	off  int64
	data []byte
}

// New returns a file that holds image, durably. A nil image means a blank state file, as
// localcache.Open creates it.
func New(image []byte) *File {
	if image == nil {
		image = make([]byte, blankSize)
	}
	return &File{cache: slices.Clone(image), disk: slices.Clone(image)}
}

// Disk returns a copy of the durable bytes.
func (f *File) Disk() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.disk)
}

// Remove implements localcache.File. It only records that it was called, see Removed.
func (f *File) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = true
	return nil
}

// Removed reports whether Remove was called.
func (f *File) Removed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removed
}

// Crash simulates a power cut: of the unsynced data, only the units that Survives selects
// are left.
func (f *File) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.land(f.Survives)
	f.cache = append(f.cache[:0], f.disk...)
}

// Damage overwrites bytes at offset off, on the disk and in the page cache.
func (f *File) Damage(off int64, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(f.disk[off:], b)
	copy(f.cache[off:], b)
	f.landed()
}

// Clone returns a second file with the same contents, unsynced writes included, and without
// hooks.
func (f *File) Clone() *File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &File{cache: slices.Clone(f.cache), disk: slices.Clone(f.disk), pending: slices.Clone(f.pending)}
}

func (f *File) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= int64(len(f.cache)) {
		return 0, io.EOF
	}
	n := copy(p, f.cache[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *File) WriteAt(p []byte, off int64) (int, error) {
	var failed error
	if f.FailWrites != nil {
		n, err := f.FailWrites(off, len(p))
		if err != nil {
			p, failed = p[:n], err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	end := off + int64(len(p))
	if f.Full && end > int64(len(f.cache)) {
		return 0, &os.PathError{Op: "write", Path: "memfile", Err: syscall.ENOSPC}
	}
	f.cache = put(f.cache, off, p)
	f.pending = append(f.pending, memWrite{off, slices.Clone(p)})
	return len(p), failed
}

func (f *File) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cache = resize(f.cache, size)
	f.pending = append(f.pending, memWrite{off: size})
	return nil
}

func (f *File) Datasync() error {
	var failed error
	if f.FailSyncs != nil {
		failed = f.FailSyncs()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed != nil {
		f.land(f.Survives)
		return failed
	}
	f.land(func(int64) bool { return true })
	return nil
}

func (f *File) Sync() error { return f.Datasync() }

func (f *File) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.cache)), nil
}

func (f *File) Close() error { return nil }

// land moves the units that survive from the unsynced writes to the disk, and drops the
// others.
func (f *File) land(survives func(off int64) bool) {
	unit := cmp.Or(f.Unit, 512)
	for _, w := range f.pending {
		if w.data == nil {
			if survives != nil && survives(w.off) {
				f.disk = resize(f.disk, w.off)
			}
			continue
		}
		for at, end := w.off, w.off+int64(len(w.data)); at < end; {
			next := min(at-at%unit+unit, end)
			if survives != nil && survives(at) {
				f.disk = put(f.disk, at, w.data[at-w.off:next-w.off])
			}
			at = next
		}
	}
	f.pending = f.pending[:0]
	f.landed()
}

func (f *File) landed() {
	if f.Landed != nil {
		f.Landed(f.disk)
	}
}

// put copies p to b[off:], grows b if necessary, and returns it.
func put(b []byte, off int64, p []byte) []byte {
	if end := off + int64(len(p)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[off:], p)
	return b
}

// resize returns a copy of b with the given size, cut or filled up with zeros.
func resize(b []byte, size int64) []byte {
	out := make([]byte, size)
	copy(out, b)
	return out
}
