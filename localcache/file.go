package localcache

import "fmt"

// File has the operations of a file that a StateFile needs: writes in place, and a sync that returns nil only for
// durable data. The package memfile has one that injects faults.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	// Datasync returns nil only when all data written are durable, like fdatasync(2).
	Datasync() error
	// Sync is like Datasync, and also covers the file's metadata.
	Sync() error
	Size() (int64, error)
	Truncate(size int64) error
	// Remove deletes the file's name, durably. It fails if the name belongs to another file by now.
	Remove() error
	Close() error
}

// preallocate fills the file with zeros, so that the filesystem has room for both blocks before the first Save.
func preallocate(f File) error {
	if _, err := f.WriteAt(make([]byte, FileSize), 0); err != nil {
		return fmt.Errorf("preallocate the state file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the state file: %w", err)
	}
	return nil
}
