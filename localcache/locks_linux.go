package localcache

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// lockHolder reads from /proc whether f is locked and by which process. pid is 0 if the process is not visible.
// lockHolder does not touch the lock. Its result is only for display, because the kernel does not list locks of
// processes in a container that is not visible from here.
func lockHolder(f *os.File) (pid int, held bool) {
	fdinfo, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	if err != nil {
		return 0, false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, false
	}
	file := lockedFile(string(fdinfo), string(mounts))
	if file == "" {
		return 0, false
	}
	return findLock(string(locks), file)
}

// lockedFile returns the name that /proc/locks uses for the file described by fdinfo, "" if the name is unknown. stat
// cannot give that name, because its device and inode differ on btrfs and overlayfs.
func lockedFile(fdinfo, mountinfo string) string {
	var mount, inode string
	for line := range strings.Lines(fdinfo) {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "mnt_id":
			mount = strings.TrimSpace(value)
		case "ino": // Linux 5.14
			inode = strings.TrimSpace(value)
		}
	}
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /root /mount/point ...: id, parent, major:minor
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != mount || inode == "" {
			continue
		}
		var major, minor int
		if _, err := fmt.Sscanf(fields[2], "%d:%d", &major, &minor); err != nil {
			return ""
		}
		return fmt.Sprintf("%02x:%02x:%s", major, minor, inode)
	}
	return ""
}

// findLock looks for the flock on the file in the text of /proc/locks:
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF
func findLock(locks, file string) (pid int, held bool) {
	for line := range strings.Lines(locks) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != file {
			continue // a waiter's line has "->" in front of FLOCK
		}
		pid, _ = strconv.Atoi(fields[4])
		return max(pid, 0), true
	}
	return 0, false
}
