// Package faultdisk provides a small disk for a node's state directory. The disk is an ext4
// filesystem in a file, on a loop device. It fills up, fails and stalls on demand, while
// processes have files open on it.
//
//	disk := faultdisk.New(t)
//	...                // the node's state directory is in disk.Dir()
//	disk.Freeze()
//	...
//	disk.Thaw()
//
// It needs Linux, root and a kernel that provides loop devices. New skips the test if one of
// these is missing. The disk is removed when the test ends, even if the test process is killed:
// see guard.
//
// # A disk that cannot be written
//
// These ways were tried on Linux 6.18, with a descriptor open for writing:
//
//   - mount -o remount,ro: EBUSY, by design. It works, and gives EROFS, once
//     nothing is open for writing.
//   - mount -o errors=remount-ro, and an error by trigger_fs_error in sysfs:
//     writes and syncs fail with EROFS at once. This is permanent: since Linux
//     6.15 a remount,rw is accepted and changes nothing
//     (EXT4_FLAGS_EMERGENCY_RO). Older kernels need a filesystem without a
//     journal for the remount.
//   - the EXT4_IOC_SHUTDOWN ioctl: EIO, permanent.
//   - blockdev --setro: a line in the kernel's log. Writes still succeed.
//   - chattr +i on the file below the loop device: the device fails every
//     write with EIO, and chattr -i ends the fault. Writes into the page cache
//     still succeed and fdatasync fails, as on a disk that is about to die.
//
// ReadOnly uses the first way where it works, and the last one elsewhere. The filesystem has no
// journal, because ext4 would abort the journal at the first error, permanently. The image is in
// /var/tmp and not on a tmpfs, because tmpfs still writes to an immutable file that is open.
//
// # A disk that stalls
//
// The ioctl FIFREEZE stalls the disk. Calls of write, fdatasync and open for writing wait in the
// kernel, in state D, until FITHAW. A process that waits there ends after kill -9 only once the
// disk is thawed, so thaw the disk before you wait for such a process. A write that began before
// the kill is still completed.
package faultdisk
