package record

import (
	"encoding/json"
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
)

// Cluster is the part of /cluster that sequences need.
type Cluster struct {
	UUID string `json:"uuid"`
	// Incarnation counts the losses of data that were noticed.
	Incarnation int64 `json:"incarnation"`
}

// Snapshot is /cluster, /seq and the record of a name, as they were read together.
type Snapshot struct {
	// Cluster is nil if /cluster is missing, and State if /seq is. Record is nil if there is none, or none was read.
	Cluster        *Cluster
	ClusterVersion int32
	State          *State
	StateVersion   int32
	StateWritten   int64 // Unix ms of ZooKeeper's leader
	Record         *Record
	Stat           store.Stat // of the record
}

// Incarnation returns that of /cluster, -1 if /cluster is missing.
func (v Snapshot) Incarnation() int64 {
	if v.Cluster == nil {
		return -1
	}
	return v.Cluster.Incarnation
}

// CheckOps returns the operations without which nothing is written: /cluster and /seq must be as they were read (S10).
// So a node or an operator who does not know of a loss of data writes nothing.
func (v Snapshot) CheckOps() []store.Op {
	return []store.Op{v.CheckClusterOp(), store.CheckOp{Path: StatePath, Version: v.StateVersion}}
}

// SetStateOps returns the operations that write /seq, if it is as it was read.
func (v Snapshot) SetStateOps(st State) []store.Op {
	return setVersion(store.SetOp{Path: StatePath, Data: st.Marshal(), Version: v.StateVersion})
}

// CheckClusterOp returns the operation that fails if /cluster is not as it was read.
func (v Snapshot) CheckClusterOp() store.Op {
	//mutant:s10-cluster by internal/core/seq:TestNoBlockIsTakenInAnEarlierIncarnation -> version := int32(store.AnyVersion)
	version := v.ClusterVersion
	return store.CheckOp{Path: ClusterPath, Version: version}
}

// ParseSnapshot parses what GetAll returned for ClusterPath, StatePath and, if there is one, a record's path. An error
// names the path that is not flaked's, or is that of Parse.
func ParseSnapshot(read []store.Record) (v Snapshot, err error) {
	if read[0].Found {
		v.Cluster, v.ClusterVersion = new(Cluster), read[0].Stat.Version
		if err := json.Unmarshal(read[0].Data, v.Cluster); err != nil || v.Cluster.UUID == "" {
			return Snapshot{}, fmt.Errorf("%s is not a record of flaked: %.80q", ClusterPath, read[0].Data)
		}
	}
	if read[1].Found {
		v.State, v.StateVersion, v.StateWritten = new(State), read[1].Stat.Version, read[1].Stat.Mtime
		if err := json.Unmarshal(read[1].Data, v.State); err != nil || v.State.Cluster == "" {
			return Snapshot{}, fmt.Errorf("%s is not a record of flaked: %.80q", StatePath, read[1].Data)
		}
		v.State.Incarnation = max(0, v.Incarnation())
	}
	if len(read) > 2 && read[2].Found {
		r, err := Parse(read[2].Data)
		if err != nil {
			return Snapshot{}, err
		}
		v.Record, v.Stat = &r, read[2].Stat
	}
	return v, nil
}

// CheckUUID returns an error if what was read is another cluster's.
func (v Snapshot) CheckUUID(uuid string) error {
	path, of := ClusterPath, uuid
	if v.Cluster != nil {
		of = v.Cluster.UUID
	}
	if v.State != nil && of == uuid {
		path, of = StatePath, v.State.Cluster
	}
	if of != uuid {
		const text = "%s belongs to cluster %s, and this node to cluster %s. Remove it, or use another cluster name"
		return fmt.Errorf(text, path, of, uuid)
	}
	return nil
}
