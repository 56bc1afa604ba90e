//go:build unix

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenFiles returns how many files this process may open, and whether that is known. It is the hard
// limit, as Go programs raise the soft limit to the hard one.
func OpenFiles() (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err == nil
}

// writable returns nil if this user can create files in dir.
func writable(dir string) error {
	return os.NewSyscallError("access "+dir, unix.Access(dir, unix.W_OK|unix.X_OK))
}
