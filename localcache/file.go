package localcache

import "fmt"

// File is what the record needs of a file: in-place writes, and a sync that
// tells the truth. MemFile is one with faults.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Datasync returns nil only once all that was written is durable, as
	// fdatasync(2).
	Datasync() error
	// Sync is Datasync, and the file's metadata.
	Sync() error
	Size() (int64, error)
	Truncate(size int64) error
	// Remove deletes the file's name, durably, where it still is this file's.
	Remove() error
	Close() error
}

// preallocate writes zeros, so that the filesystem has found room for both
// blocks before the first of them is needed.
func preallocate(f File) error {
	if _, err := f.WriteAt(make([]byte, FileSize), 0); err != nil {
		return fmt.Errorf("localcache: preallocate the state file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("localcache: sync the state file: %w", err)
	}
	return nil
}
