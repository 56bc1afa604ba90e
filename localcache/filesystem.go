package localcache

import "strings"

// refusedMagics maps the magic numbers of refused filesystems, by statfs(2), to their names. On these filesystems two
// hosts may both get the lock, or a sync may return before the data are durable. The node cannot detect either.
var refusedMagics = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x65735546: "FUSE",
	0x01021997: "9p",
	0x00c36400: "Ceph",
}

// refusedMagic reports whether the filesystem with this magic number is refused, and returns its name.
func refusedMagic(magic uint32) (name string, refused bool) {
	name, refused = refusedMagics[magic]
	return name, refused
}

// refusedName does the same for systems that identify a filesystem by a name (macOS).
func refusedName(fstype string) (name string, refused bool) {
	for _, n := range []string{"nfs", "smb", "cifs", "afp", "webdav", "fuse", "9p", "ceph"} {
		if strings.Contains(strings.ToLower(fstype), n) {
			return fstype, true
		}
	}
	return "", false
}
