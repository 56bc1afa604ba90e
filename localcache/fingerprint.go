package localcache

import (
	"crypto/sha256"
	"encoding/hex"
)

// These are the names of the parts of a Fingerprint in Loaded.Changed.
const (
	PartMachineID   = "machine-id"
	PartProductUUID = "product UUID"
	PartFilesystem  = "filesystem"
	PartInode       = "inode"
	PartBirthTime   = "birth time"
)

// Fingerprint distinguishes a state file from its copies on another machine, on a cloned
// disk, or beside the original. Each part is a short hash, because machine-id is
// confidential. A part is "" if it cannot be read.
type Fingerprint struct {
	// MachineID is the hash of /etc/machine-id.
	MachineID string `json:"machine_id,omitempty"`
	// ProductUUID is the hash of the DMI product UUID, which mostly only root may read. On
	// macOS it is the hash of kern.uuid.
	ProductUUID string `json:"product_uuid,omitempty"`
	// Filesystem is the hash of the id of the file's filesystem (f_fsid).
	Filesystem string `json:"filesystem,omitempty"`
	// Inode is the hash of the number of the file's inode.
	Inode string `json:"inode,omitempty"`
	// BirthTime is the hash of the time when the inode was created.
	BirthTime string `json:"birth_time,omitempty"`
}

// TellsMachines reports whether fp identifies the machine. If it does not, a clone of the
// file's volume looks like the original.
func (fp Fingerprint) TellsMachines() bool { return fp.MachineID != "" || fp.ProductUUID != "" }

// Changed returns the names of the parts in which fp differs from then. Two unreadable
// parts are equal. A part that has become readable or unreadable differs.
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

// shortHash returns 16 hex digits. Equal values of different parts have different hashes.
func shortHash(part, value string) string {
	sum := sha256.Sum256([]byte("flaked " + part + "\x00" + value))
	return hex.EncodeToString(sum[:8])
}
