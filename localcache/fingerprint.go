package localcache

import (
	"crypto/sha256"
	"encoding/hex"
)

// The parts of a Fingerprint, as Loaded.Changed names them.
const (
	PartMachineID   = "machine-id"
	PartProductUUID = "product UUID"
	PartFilesystem  = "filesystem"
	PartInode       = "inode"
	PartBirthTime   = "birth time"
)

// Fingerprint tells a state file from its copies: on another machine, on a
// cloned disk, or beside the original. Each part is a short hash (machine-id is
// not to be shown around), or empty where it cannot be read.
type Fingerprint struct {
	// MachineID is of /etc/machine-id.
	MachineID string `json:"machine_id,omitempty"`
	// ProductUUID is of the DMI product UUID, which mostly root alone may read.
	ProductUUID string `json:"product_uuid,omitempty"`
	// Filesystem is of the id of the filesystem the file is on (f_fsid).
	Filesystem string `json:"filesystem,omitempty"`
	// Inode is of the number of the file's inode.
	Inode string `json:"inode,omitempty"`
	// BirthTime is of when that inode was made.
	BirthTime string `json:"birth_time,omitempty"`
}

// TellsMachines reports whether fp says which machine the file is on. If not, a clone
// of the file's volume passes for the original.
func (fp Fingerprint) TellsMachines() bool { return fp.MachineID != "" || fp.ProductUUID != "" }

// Changed names the parts in which fp differs from then. Two unreadable parts
// are equal; one that has become readable or unreadable differs.
func (fp Fingerprint) Changed(then Fingerprint) []string {
	var parts []string
	for _, p := range []struct{ name, now, then string }{
		{PartMachineID, fp.MachineID, then.MachineID},
		{PartProductUUID, fp.ProductUUID, then.ProductUUID},
		{PartFilesystem, fp.Filesystem, then.Filesystem},
		{PartInode, fp.Inode, then.Inode},
		{PartBirthTime, fp.BirthTime, then.BirthTime},
	} {
		if p.now != p.then {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// shortHash is 16 hex digits, different for equal values of different parts.
func shortHash(part, value string) string {
	sum := sha256.Sum256([]byte("flaked " + part + "\x00" + value))
	return hex.EncodeToString(sum[:8])
}
