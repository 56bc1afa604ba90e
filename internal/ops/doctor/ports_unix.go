//go:build unix

package doctor

import "golang.org/x/sys/unix"

// OpenFiles returns how many files this process may open, and whether that is known. It is the hard
// limit, as Go programs raise the soft limit to the hard one.
func OpenFiles() (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err == nil
}
