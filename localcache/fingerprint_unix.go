//go:build linux || darwin

package localcache

import (
	"os"
	"strconv"
	"strings"
)

// readFingerprint returns the fingerprint of f. A part that the system does not reveal
// stays empty. An error means that the metadata of f itself could not be read.
func readFingerprint(f *os.File) (Fingerprint, error) {
	filesystem, err := filesystemID(f)
	if err != nil {
		return Fingerprint{}, err
	}
	st, err := fstat(f)
	if err != nil {
		return Fingerprint{}, err
	}
	return Fingerprint{
		MachineID:   shortHash(PartMachineID, machineID()),
		ProductUUID: uuidHash(productUUID()),
		Filesystem:  shortHash(PartFilesystem, filesystem),
		Inode:       shortHash(PartInode, strconv.FormatUint(st.Ino, 10)),
		BirthTime:   shortHash(PartBirthTime, birthTime(f)),
	}, nil
}

// CloneUnseen reports whether a node on another machine could not tell a clone of the directory's volume from the
// original. A pod's own directory has no clone: its emptyDir goes with the pod.
func (d *Dir) CloneUnseen() bool {
	return machineID() == "" && productUUID() == "" &&
		!strings.Contains(mountedRoot(d.self), "/kubernetes.io~empty-dir/")
}
