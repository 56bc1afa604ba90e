package localcache

// Examination describes a state directory that Examine has looked at without using it. Its methods look at the same
// directory again, through the handle that Close closes: ReadState reads the state file in it.
type Examination struct {
	// Missing reports whether the directory does not exist yet. The other fields then describe Place, the nearest
	// directory above it that exists. Otherwise Place is the directory itself.
	Missing bool
	Place   string
	// Refused is the error with which Open would refuse the directory, nil if none was found. The state file itself is
	// not checked, nor whether Open could take away the rights of other users. Owner is the user id of the directory's
	// owner.
	Refused error
	Owner   int
	// Filesystem is the name of the directory's filesystem, such as ext4 or tmpfs.
	Filesystem string
	// CloneUnseen: see Dir.CloneUnseen.
	CloneUnseen bool
	// FreeBytes is the space that users other than root may use. FreeInodes and Inodes are
	// 0 if the filesystem does not count inodes.
	FreeBytes          uint64
	FreeInodes, Inodes uint64
	// Locked: a running node is seen to use the directory. It is always false on macOS, and before Linux 5.14. LockedBy
	// is the node's process id, 0 if that is not visible.
	Locked   bool
	LockedBy int

	dir *Dir // Place, nil if it could not be opened
}

// Close ends the examination.
func (x Examination) Close() {
	if x.dir != nil {
		_ = x.dir.Close()
	}
}
