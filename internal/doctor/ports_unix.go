//go:build unix

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// writable returns nil if this user can create files in dir.
func writable(dir string) error {
	return os.NewSyscallError("access "+dir, unix.Access(dir, unix.W_OK|unix.X_OK))
}
