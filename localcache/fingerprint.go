package localcache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// These are the names of the parts of a Fingerprint in Loaded.Changed.
const (
	PartMachineID   = "machine-id"
	PartProductUUID = "product UUID"
	PartFilesystem  = "filesystem"
	PartInode       = "inode"
	PartBirthTime   = "birth time"
)

// Fingerprint distinguishes a state file from its copies on another machine, on a cloned disk, or beside the original.
// Each part is a short hash, because machine-id is confidential. A part is "" if it cannot be read.
type Fingerprint struct {
	// MachineID is the hash of /etc/machine-id. Some machines have a new one at each boot.
	MachineID string `json:"machine_id,omitempty"`
	// ProductUUID is the hash of the DMI product UUID, which mostly only root may read. On
	// macOS it is the hash of the host's UUID.
	ProductUUID string `json:"product_uuid,omitempty"`
	// Filesystem is the hash of what identifies the file's filesystem in every mount of it, under any device number.
	Filesystem string `json:"filesystem,omitempty"`
	// Inode is the hash of the number of the file's inode.
	Inode string `json:"inode,omitempty"`
	// BirthTime is the hash of the time when the inode was created.
	BirthTime string `json:"birth_time,omitempty"`
}

// Changed returns the names of the parts that show that the file was copied or moved since it
// had the fingerprint then. It returns nil for the same file on the same machine.
//
// Filesystem and inode must be equal. The machine is the same one if its product UUID is, or if machine-id is and one
// side lacks the product UUID. Without any of the four, the machine counts as the same one. A birth time that one side
// lacks does not count on a machine that is proven to be the same.
func (fp Fingerprint) Changed(then Fingerprint) []string {
	sameMachine := fp.ProductUUID == then.ProductUUID
	if fp.ProductUUID == "" || then.ProductUUID == "" {
		sameMachine = then.MachineID != "" && fp.MachineID == then.MachineID
	}
	oneBirthTime := fp.BirthTime == "" || then.BirthTime == ""
	var parts []string
	for _, p := range []struct {
		name, now, then string
		excused         bool
	}{
		{PartMachineID, fp.MachineID, then.MachineID, sameMachine},
		{PartProductUUID, fp.ProductUUID, then.ProductUUID, sameMachine},
		{PartFilesystem, fp.Filesystem, then.Filesystem, false},
		{PartInode, fp.Inode, then.Inode, false},
		{PartBirthTime, fp.BirthTime, then.BirthTime, sameMachine && oneBirthTime},
	} {
		if p.now != p.then && !p.excused {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// orKnown returns fp with the parts of then, the same file's earlier fingerprint, where fp has
// none. A start that cannot read a part so leaves it to the next comparison.
func (fp Fingerprint) orKnown(then Fingerprint) Fingerprint {
	fp.MachineID = cmp.Or(fp.MachineID, then.MachineID)
	fp.ProductUUID = cmp.Or(fp.ProductUUID, then.ProductUUID)
	fp.BirthTime = cmp.Or(fp.BirthTime, then.BirthTime)
	return fp
}

// sharedUUIDs are product UUIDs that many machines have, because nobody gave them their own.
var sharedUUIDs = []string{
	"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
	"03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
}

// uuidHash returns the hash of a product UUID, "" if it does not identify a machine.
func uuidHash(uuid string) string {
	if uuid = strings.ToLower(uuid); slices.Contains(sharedUUIDs, uuid) {
		return ""
	}
	return shortHash(PartProductUUID, uuid)
}

// shortHash returns 16 hex digits, "" for no value. Equal values of different parts have different hashes.
func shortHash(part, value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("flaked " + part + "\x00" + value))
	return hex.EncodeToString(sum[:8])
}
