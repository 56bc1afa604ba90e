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
// ReadOnly remounts the disk read-only where nothing is open for writing. Elsewhere it makes the
// file below the loop device immutable: writes into the page cache still succeed and fdatasync
// fails, as on a disk that is about to die. Other ways are permanent (errors=remount-ro,
// EXT4_IOC_SHUTDOWN) or let writes succeed (blockdev --setro). The filesystem has no journal,
// because ext4 would abort it at the first error. The image is in /var/tmp and not on a tmpfs,
// because tmpfs still writes to an immutable file that is open.
//
// Freeze uses the ioctl FIFREEZE: write, fdatasync and open for writing wait in the kernel until
// Thaw. A process that waits there ends after kill -9 only once the disk is thawed, so thaw the
// disk before you wait for such a process. A write that began before the kill is still completed.
package faultdisk
