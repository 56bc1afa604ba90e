package localcache

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	err := retry(func() error { return unix.Fdatasync(int(f.Fd())) })
	return os.NewSyscallError("fdatasync", err)
}

func checkFilesystem(f *os.File) error {
	st, err := statfs(f)
	if err != nil {
		return err
	}
	if name, refused := refusedMagic(uint32(st.Type)); refused {
		return filesystemError(f.Name(), name)
	}
	return nil
}

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	fp := Fingerprint{
		MachineID:   fileHash(PartMachineID, "/etc/machine-id"),
		ProductUUID: fileHash(PartProductUUID, "/sys/class/dmi/id/product_uuid"),
	}
	fs, err := statfs(f)
	if err != nil {
		return fp, err
	}
	if id := fs.Fsid.Val; id[0] != 0 || id[1] != 0 {
		fp.Filesystem = shortHash(PartFilesystem, fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1])))
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fp, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	fp.Inode = shortHash(PartInode, strconv.FormatUint(uint64(st.Ino), 10))
	var stx unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &stx)
	if err == nil && stx.Mask&unix.STATX_BTIME != 0 { // else: a filesystem or kernel without it
		fp.BirthTime = shortHash(PartBirthTime, fmt.Sprintf("%d.%09d", stx.Btime.Sec, stx.Btime.Nsec))
	}
	return fp, nil
}

// fileHash returns the hash of a small file's text, "" if the file cannot be read or has no
// value yet.
func fileHash(part, path string) string {
	b, err := os.ReadFile(path)
	text := strings.TrimSpace(string(b))
	// systemd writes "uninitialized" until the first boot sets the machine-id.
	if err != nil || text == "" || text == "uninitialized" {
		return ""
	}
	return shortHash(part, text)
}
