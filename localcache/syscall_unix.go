//go:build linux || darwin

package localcache

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func fstat(f *os.File) (st unix.Stat_t, err error) {
	if err = unix.Fstat(int(f.Fd()), &st); err != nil {
		err = fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	return st, err
}

func statfs(f *os.File) (st unix.Statfs_t, err error) {
	if err = retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		err = fmt.Errorf("statfs %s: %w", f.Name(), err)
	}
	return st, err
}

// fsid returns f_fsid, "" if the filesystem has none.
func fsid(st unix.Statfs_t) string {
	id := st.Fsid.Val
	if id[0] == 0 && id[1] == 0 {
		return ""
	}
	return fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1]))
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
