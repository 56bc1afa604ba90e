//go:build unix

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// writable is nil where this user can make files.
func writable(dir string) error {
	return os.NewSyscallError("access "+dir, unix.Access(dir, unix.W_OK|unix.X_OK))
}
