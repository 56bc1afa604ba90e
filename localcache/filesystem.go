package localcache

import (
	"slices"
	"strings"
)

// refusedFilesystems are parts of the names of filesystems on which two hosts may both get the lock, or a sync
// may return before the data are durable. The node cannot detect either.
var refusedFilesystems = []string{"nfs", "smb", "cifs", "afp", "webdav", "fuse", "9p", "ceph"}

// refused reports whether the filesystem with this name is refused.
func refused(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(refusedFilesystems, func(part string) bool { return strings.Contains(name, part) })
}
