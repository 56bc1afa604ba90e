package localcache

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datasync uses os.File.Sync, which is F_FULLFSYNC on macOS. fsync(2) would leave the data in the disk's own cache.
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
	if id, err := hostUUID(); err == nil {
		fp.ProductUUID = uuidHash(id)
	}
	id, err := filesystemID(f)
	if err != nil {
		return fp, err
	}
	if id != "" {
		fp.Filesystem = shortHash(PartFilesystem, id)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fp, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	fp.Inode = shortHash(PartInode, strconv.FormatUint(st.Ino, 10))
	fp.BirthTime = shortHash(PartBirthTime, fmt.Sprintf("%d.%09d", st.Btim.Sec, st.Btim.Nsec))
	return fp, nil
}

// hostUUID returns the UUID of this Mac. kern.uuid is not that: it is the kernel's, and each
// update of macOS changes it.
func hostUUID() (string, error) {
	var id [16]byte
	var wait unix.Timespec // none
	_, _, errno := unix.Syscall(unix.SYS_GETHOSTUUID, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&wait)), 0)
	if errno != 0 {
		return "", errno
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}

// volumeUUID returns the UUID of f's volume.
func volumeUUID(f *os.File) (string, error) {
	ask := unix.Attrlist{Bitmapcount: unix.ATTR_BIT_MAP_COUNT, Volattr: unix.ATTR_VOL_INFO | unix.ATTR_VOL_UUID}
	var b [20]byte // a length of 4 bytes, and the UUID
	_, _, errno := unix.Syscall6(unix.SYS_FGETATTRLIST, f.Fd(), uintptr(unsafe.Pointer(&ask)),
		uintptr(unsafe.Pointer(&b)), uintptr(len(b)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	if n := binary.LittleEndian.Uint32(b[:]); n != uint32(len(b)) {
		return "", fmt.Errorf("getattrlist: %d bytes", n)
	}
	return hex.EncodeToString(b[4:]), nil
}

// filesystemID returns what identifies f's filesystem, "" if nothing does. A restart may change
// f_fsid, which has the device number.
func filesystemID(f *os.File) (string, error) {
	if id, err := volumeUUID(f); err == nil {
		return id, nil
	}
	fs, err := statfs(f)
	if id := fs.Fsid.Val; err != nil || id[0] == 0 && id[1] == 0 {
		return "", err
	}
	return fmt.Sprintf("%08x%08x", uint32(fs.Fsid.Val[0]), uint32(fs.Fsid.Val[1])), nil
}

// lockHolder returns false, because macOS does not show who holds a lock.
func lockHolder(*os.File) (pid int, held bool) { return 0, false }
