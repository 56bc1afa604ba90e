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
	// ClusterPath is the record of the cluster. Package coordinator keeps it.
	ClusterPath = "/cluster"
	// NodesDir has an ephemeral record for each node that may own ordered sequences, with its address as name.
	NodesDir = "/seq/nodes"
)

// Path returns the path of a sequence's record. Znode names have no slashes, and names of
// sequences have no percent signs.
func Path(name string) string {
	return BucketPath(name) + "/" + strings.ReplaceAll(name, "/", "%2F")
}

// NameOf returns the name of the sequence whose record is the child of a bucket.
func NameOf(child string) string { return strings.ReplaceAll(child, "%2F", "/") }

// BucketPath returns the path of the directory that has a sequence's record, among those of some other names.
func BucketPath(name string) string {
	return fmt.Sprintf("%s/%03x", RecordsDir, positions.Bucket(name))
}
