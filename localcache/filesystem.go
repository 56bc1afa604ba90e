package localcache

import "strings"

// The filesystems that are refused, by the magic number of statfs(2). On these
// a lock may be granted to two hosts or to nobody's knowledge, or a sync may
// return before the data is safe, and there is no telling from here.
var refusedMagics = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x65735546: "FUSE",
	0x01021997: "9p",
	0x00c36400: "Ceph",
}

// refusedMagic names the filesystem if its magic number is one of those refused.
func refusedMagic(magic uint32) (name string, refused bool) {
	name, refused = refusedMagics[magic]
	return name, refused
}

// refusedName does the same where filesystems go by name (macOS).
func refusedName(fstype string) (name string, refused bool) {
	for _, n := range []string{"nfs", "smb", "cifs", "afp", "webdav", "fuse", "9p", "ceph"} {
		if strings.Contains(strings.ToLower(fstype), n) {
			return fstype, true
		}
	}
	return "", false
}
