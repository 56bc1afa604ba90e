package localcache

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	err := retry(func() error { return unix.Fdatasync(int(f.Fd())) })
	return os.NewSyscallError("fdatasync", err)
}

func checkFilesystem(f *os.File) error {
	st, err := statfs(f)
	if err != nil {
		return err
	}
	if name, refused := refusedMagic(uint32(st.Type)); refused {
		return filesystemError(f.Name(), name)
	}
	return nil
}

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	fp := Fingerprint{
		MachineID:   machineHash(smallFile("/etc/machine-id")),
		ProductUUID: uuidHash(smallFile("/sys/class/dmi/id/product_uuid")),
	}
	fs, err := statfs(f)
	if err != nil {
		return fp, err
	}
	if id := filesystemID(f, fs); id != "" {
		fp.Filesystem = shortHash(PartFilesystem, id)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fp, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	fp.Inode = shortHash(PartInode, strconv.FormatUint(uint64(st.Ino), 10))
	var stx unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &stx)
	if err == nil && stx.Mask&unix.STATX_BTIME != 0 { // else: a filesystem or kernel without it
		fp.BirthTime = shortHash(PartBirthTime, fmt.Sprintf("%d.%09d", stx.Btime.Sec, stx.Btime.Nsec))
	}
	return fp, nil
}

const zfsMagic = 0x2fc12fc1 // x/sys has no name for it

// Read requests of ioctl(2). x/sys has no numbers for them. readRequest is _IOR without the
// type, number and size: processors differ in it.
const (
	readRequest    = unix.FS_IOC_GETFLAGS & 0xe0000000
	xfsGeometry    = readRequest | 112<<16 | 'X'<<8 | 124 // XFS_IOC_FSGEOMETRY_V4
	filesystemUUID = readRequest | 17<<16 | 0x15<<8       // FS_IOC_GETFSUUID, Linux 6.9
)

// filesystemID returns what identifies f's filesystem, whose statfs is st, after each reboot, and
// "" if nothing does. On most filesystems that is f_fsid:
//   - ext4, btrfs and ZFS compute it from the filesystem's UUID, btrfs and ZFS also from the subvolume
//     or dataset. The UUID alone would not distinguish a snapshot beside the original.
//   - tmpfs has a new one at each mount, but the file does not survive that either.
//   - overlayfs takes it from the UUID that its upper directory has since Linux 6.6, or else from
//     the upper directory's filesystem. If that is XFS, nothing is stable.
//
// On XFS and some others f_fsid is the device number, so the UUID is used there.
func filesystemID(f *os.File, st unix.Statfs_t) string {
	switch uint32(st.Type) {
	case unix.XFS_SUPER_MAGIC:
		if geometry, err := readIoctl(f, xfsGeometry, 112); err == nil {
			return hex.EncodeToString(geometry[64:80])
		}
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, zfsMagic, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
	default:
		if uuid, err := readIoctl(f, filesystemUUID, 17); err == nil && uuid[0] == 16 {
			return hex.EncodeToString(uuid[1:])
		}
	}
	if id := st.Fsid.Val; id[0] != 0 || id[1] != 0 {
		return fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1]))
	}
	return ""
}

// readIoctl returns the size bytes with which ioctl(2) answers a request to f.
func readIoctl(f *os.File, request uint, size int) ([]byte, error) {
	b := make([]byte, size)
	err := retry(func() error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(request),
			uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
			return errno
		}
		return nil
	})
	return b, err
}

// machineHash returns the hash of a machine-id, "" if it has no value yet.
func machineHash(id string) string {
	// systemd writes "uninitialized" until the first boot sets the machine-id.
	if id == "" || id == "uninitialized" {
		return ""
	}
	return shortHash(PartMachineID, id)
}

// smallFile returns the text of a file without its white space, "" if it cannot be read.
func smallFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
