package localcache

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// datasync uses os.File.Sync, which is F_FULLFSYNC on macOS. fsync(2) would leave the data
// in the disk's own cache.
func datasync(f *os.File) error { return f.Sync() }

func checkFilesystem(f *os.File) error {
	st, err := statfs(f)
	if err != nil {
		return err
	}
	if name, refused := refusedName(unix.ByteSliceToString(st.Fstypename[:])); refused {
		return filesystemError(f.Name(), name)
	}
	return nil
}

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	var fp Fingerprint
	if id, err := unix.Sysctl("kern.uuid"); err == nil && id != "" {
		fp.ProductUUID = shortHash(PartProductUUID, id)
	}
	fs, err := statfs(f)
	if err != nil {
		return fp, err
	}
	if id := fs.Fsid.Val; id[0] != 0 || id[1] != 0 {
		fp.Filesystem = shortHash(PartFilesystem, fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1])))
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fp, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	fp.Inode = shortHash(PartInode, strconv.FormatUint(st.Ino, 10))
	fp.BirthTime = shortHash(PartBirthTime, fmt.Sprintf("%d.%09d", st.Btim.Sec, st.Btim.Nsec))
	return fp, nil
}

// lockHolder returns false, because macOS does not show who holds a lock.
func lockHolder(*os.File) (pid int, held bool) { return 0, false }
