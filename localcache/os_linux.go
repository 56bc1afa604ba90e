package localcache

import (
	"cmp"
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

// filesystemNames maps the magic numbers of statfs(2) to names.
var filesystemNames = map[uint32]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.F2FS_SUPER_MAGIC: "f2fs", zfsMagic: "zfs", unix.TMPFS_MAGIC: "tmpfs",
	unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.SMB2_SUPER_MAGIC: "SMB2", unix.FUSE_SUPER_MAGIC: "FUSE", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "Ceph",
}

func filesystemName(st unix.Statfs_t) string {
	magic := uint32(st.Type)
	return cmp.Or(filesystemNames[magic], fmt.Sprintf("filesystem 0x%x", magic))
}

func machineID() string {
	id := smallFile("/etc/machine-id")
	if id == "uninitialized" { // systemd writes it until the first boot sets the ID
		return ""
	}
	return id
}

func productUUID() string { return smallFile("/sys/class/dmi/id/product_uuid") }

// mountedRoot returns which directory of its filesystem is mounted where f is. It is "" if the kernel does not say:
// Linux tells the number of a mount since 5.8.
func mountedRoot(f *os.File) string {
	st, ok := statx(f, unix.STATX_MNT_ID)
	if !ok {
		return ""
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return rootOf(string(mounts), st.Mnt_id)
}

// rootOf returns the mounted directory of the mount with this number. mounts is a mountinfo of proc(5): the first
// fields of a line are number, parent, device and mounted directory.
func rootOf(mounts string, number uint64) string {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == strconv.FormatUint(number, 10) {
			return f[3]
		}
	}
	return ""
}

// birthTime returns when f's inode was created, "" on a filesystem or kernel that does not say.
func birthTime(f *os.File) string {
	st, ok := statx(f, unix.STATX_BTIME)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%09d", st.Btime.Sec, st.Btime.Nsec)
}

// statx returns what the kernel says of f. ok is false if it does not know the field, a STATX_ constant.
func statx(f *os.File, field int) (st unix.Statx_t, ok bool) {
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, field, &st)
	return st, err == nil && st.Mask&uint32(field) != 0
}

const zfsMagic = 0x2fc12fc1 // x/sys has no name for it

// Read requests of ioctl(2). x/sys has no numbers for them. readRequest is _IOR without the
// type, number and size: processors differ in it.
const (
	readRequest    = unix.FS_IOC_GETFLAGS & 0xe0000000
	xfsGeometry    = readRequest | 112<<16 | 'X'<<8 | 124 // XFS_IOC_FSGEOMETRY_V4
	filesystemUUID = readRequest | 17<<16 | 0x15<<8       // FS_IOC_GETFSUUID, Linux 6.9
)

// filesystemID returns what identifies f's filesystem after each reboot, and "" if nothing does. On most filesystems
// that is f_fsid:
//   - ext4, btrfs and ZFS compute it from the filesystem's UUID, btrfs and ZFS also from the subvolume
//     or dataset. The UUID alone would not distinguish a snapshot beside the original.
//   - tmpfs has a new one at each mount, but the file does not survive that either.
//   - overlayfs takes it from the UUID that its upper directory has since Linux 6.6, or else from
//     the upper directory's filesystem. If that is XFS, nothing is stable.
//
// On XFS and some others f_fsid is the device number, so the UUID is used there.
func filesystemID(f *os.File) (string, error) {
	st, err := statfs(f)
	if err != nil {
		return "", err
	}
	switch uint32(st.Type) {
	case unix.XFS_SUPER_MAGIC:
		if geometry, err := readIoctl(f, xfsGeometry, 112); err == nil {
			return hex.EncodeToString(geometry[64:80]), nil
		}
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, zfsMagic, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
	default:
		if uuid, err := readIoctl(f, filesystemUUID, 17); err == nil && uuid[0] == 16 {
			return hex.EncodeToString(uuid[1:]), nil
		}
	}
	return fsid(st), nil
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

// smallFile returns the text of a file without its white space, "" if it cannot be read.
func smallFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
