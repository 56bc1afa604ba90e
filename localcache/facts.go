//go:build linux || darwin

package localcache

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What the operating system says of files, filesystems and the machine.

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	filesystem, err := filesystemID(f)
	if err != nil {
		return Fingerprint{}, err
	}
	st, err := fstat(f)
	if err != nil {
		return Fingerprint{}, err
	}
	return Fingerprint{
		MachineID:   shortHash(PartMachineID, machineID()),
		ProductUUID: uuidHash(productUUID()),
		Filesystem:  shortHash(PartFilesystem, filesystem),
		Inode:       shortHash(PartInode, strconv.FormatUint(st.Ino, 10)),
		BirthTime:   shortHash(PartBirthTime, birthTime(f)),
	}, nil
}

// CloneUnseen reports whether a node on another machine could not tell a clone of the directory's volume from the
// original. A pod's own directory has no clone: its emptyDir goes with the pod.
func (d *Dir) CloneUnseen() bool {
	return machineID() == "" && productUUID() == "" &&
		!strings.Contains(mountedRoot(d.self), "/kubernetes.io~empty-dir/")
}

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
