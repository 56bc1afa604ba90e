//go:build !unix

package doctor

// OpenFiles reports that the limit is not known on this system.
func OpenFiles() (uint64, bool) { return 0, false }
