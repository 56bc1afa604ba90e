package localcache

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// filesystemNames maps the magic numbers of common filesystems to their names.
var filesystemNames = map[uint32]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.F2FS_SUPER_MAGIC: "f2fs", zfsMagic: "zfs", unix.TMPFS_MAGIC: "tmpfs",
	unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
}

func filesystemName(st unix.Statfs_t) string {
	magic := uint32(st.Type)
	if name, refused := refusedMagic(magic); refused {
		return name
	}
	if name := filesystemNames[magic]; name != "" {
		return name
	}
	return fmt.Sprintf("filesystem 0x%x", magic)
}
