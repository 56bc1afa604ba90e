package localcache

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datasync uses os.File.Sync, which is F_FULLFSYNC on macOS. fsync(2) would leave the data in the disk's own cache.
func datasync(f *os.File) error { return f.Sync() }

func filesystemName(st unix.Statfs_t) string { return unix.ByteSliceToString(st.Fstypename[:]) }

// machineID returns "", because macOS has only one identity of the machine.
func machineID() string { return "" }

// mountedRoot returns "": containers are no matter of macOS.
func mountedRoot(*os.File) string { return "" }

// birthTime returns when f's inode was created.
func birthTime(f *os.File) string {
	st, err := fstat(f)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%09d", st.Btim.Sec, st.Btim.Nsec)
}

// productUUID returns the UUID of this Mac, "" if there is none. kern.uuid is not that: it is the kernel's, and each
// update of macOS changes it.
func productUUID() string {
	var id [16]byte
	var wait unix.Timespec // none
	_, _, errno := unix.Syscall(unix.SYS_GETHOSTUUID, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&wait)), 0)
	if errno != 0 {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
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
	st, err := statfs(f)
	return fsid(st), err
}

// lockHolder returns false, because macOS does not show who holds a lock.
func lockHolder(*os.File) (pid int, held bool) { return 0, false }
