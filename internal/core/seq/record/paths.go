package record

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
)

// The paths of the records below the cluster's root.
const (
	// StatePath is the record State.
	StatePath = "/seq"
	// RecordsDir has the directories of the records of sequences: see BucketPath.
	RecordsDir = "/seq/s"
	// RequestKeysDir has one znode for each strict sequence that is asked with keys, by the record's ID.
	RequestKeysDir = "/seq/r"
	// mapKeysDir has one znode for each salted or scattered sequence, by the record's ID.
	mapKeysDir = "/seq/k"
	// ClusterPath is the record of the cluster. Package coordinator keeps it.
	ClusterPath = "/cluster"
	// NodesDir has an ephemeral record for each node that may own ordered sequences, with its address as name.
	NodesDir = "/seq/nodes"
)

// Path returns the path of a sequence's record. Znode names have no slashes, and names of sequences have no
// percent signs.
func Path(name string) string {
	return BucketPath(name) + "/" + strings.ReplaceAll(name, "/", "%2F")
}

// NameOf returns the name of the sequence whose record is the child of a bucket.
func NameOf(child string) string { return strings.ReplaceAll(child, "%2F", "/") }

// BucketPath returns the path of the directory that has a sequence's record, among those of some other names.
func BucketPath(name string) string {
	return fmt.Sprintf("%s/%03x", RecordsDir, positions.Bucket(name))
}

// Dirs returns the paths above a record and its map key.
func (r Record) Dirs(name string) []string {
	all := []string{RecordsDir, BucketPath(name)}
	if r.Keyed() {
		all = append(all, mapKeysDir)
	}
	return all
}

// MapKeyPath returns the path of the map key of the sequence with this Record.ID.
func MapKeyPath(id string) string { return mapKeysDir + "/" + id }

// RequestKeysPath returns the path of the request keys of the sequence with this Record.ID.
func RequestKeysPath(id string) string { return RequestKeysDir + "/" + id }
