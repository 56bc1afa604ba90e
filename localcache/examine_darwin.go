package localcache

import "golang.org/x/sys/unix"

func filesystemName(st unix.Statfs_t) string { return unix.ByteSliceToString(st.Fstypename[:]) }
