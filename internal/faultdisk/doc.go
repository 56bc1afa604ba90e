// Package faultdisk is a disk of its own for a node's state directory: a small
// ext4 in a file, on a loop device, that fills up, fails and stalls while
// processes have files open on it.
//
//	disk := faultdisk.New(t)
//	...                // the node gets a directory in disk.Dir()
//	disk.Freeze()
//	...
//	disk.Thaw()
//
// It needs Linux, root and a kernel that lends a loop device; New skips the
// test where one of these is missing. The disk goes when the test ends, however
// that ends: see guard.
//
// # A disk that cannot be written
//
// What was tried, on Linux 6.18, with a descriptor open for writing:
//
//   - mount -o remount,ro: EBUSY, by design. It works, and gives EROFS, once
//     nothing is open for writing.
//   - mount -o errors=remount-ro, and an error by trigger_fs_error in sysfs:
//     writes and syncs fail with EROFS at once. But that is for good: since
//     Linux 6.15 a remount,rw is accepted and changes nothing
//     (EXT4_FLAGS_EMERGENCY_RO); before, it took a filesystem without a journal.
//   - the EXT4_IOC_SHUTDOWN ioctl: EIO, for good.
//   - blockdev --setro: a line in the kernel's log. Writes go through.
//   - chattr +i on the file below the loop device: the device fails every
//     write with EIO, and chattr -i ends it. Writes into the page cache still
//     succeed, and fdatasync fails: what a disk does that is about to die.
//
// So ReadOnly does the first where it can and the last where it cannot. The
// filesystem has no journal: ext4 would abort one at the first error, and that
// again is for good. (tmpfs writes to an immutable file that is open, so the
// file is in /var/tmp.)
//
// # A disk that stalls
//
// FIFREEZE: write, fdatasync and open for writing wait in the kernel, in state
// D, until FITHAW. kill -9 counts from then on, too, and whoever waits for a
// process that is killed has to thaw the disk first. A write that has begun when
// the process is killed is done all the same.
package faultdisk
