package seq

import (
	"encoding/json"
	"fmt"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// clusterRecord is what sequences need of /cluster.
type clusterRecord struct {
	UUID string `json:"uuid"`
	// Incarnation counts the losses of data that were noticed.
	Incarnation int64 `json:"incarnation"`
}

// found is /cluster, /seq and the record of a name, as they were read together.
type found struct {
	// cluster is nil if /cluster is missing, and state if /seq is. record is nil if there is none, or none was read.
	cluster        *clusterRecord
	clusterVersion int32
	state          *State
	version        int32 // of the state
	written        int64 // when the state was, Unix ms of ZooKeeper's leader
	record         *Record
	stat           store.Stat // of the record
}

// view is the records that a decision needs, as they were read together.
type view struct {
	found
	leader   int64            // a time of ZooKeeper's leader before the read, Unix ms: see Issuer.look
	read     int64            // when the read was sent, ns of AtMost
	got      timeguard.Moment // when it was answered
	before   *Record          // what the node knew of the record when the read was sent
	keys     *keyring         // nil: they were not read
	secret   *store.Record    // the key of record, nil: it was not read
	template *template        // that may create the sequence, nil: there is none
}

// after returns what a write of the record of v leaves in ZooKeeper.
func (v view) after(t blockWrite) view {
	version := v.stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see setVersion
		version++
	}
	v.record, v.stat, v.secret = &t.record, store.Stat{Version: version}, nil
	if t.keys != nil {
		v.keys = t.keys.written()
	}
	return v
}

// incarnation returns that of /cluster, -1 if /cluster is missing.
func (v found) incarnation() int64 {
	if v.cluster == nil {
		return -1
	}
	return v.cluster.Incarnation
}

// checks returns the operations without which nothing is written: /cluster and /seq must be as they were read (S10). So
// a node or an operator who does not know of a loss of data writes nothing.
func (v found) checks() []store.Op {
	version := v.version
	return []store.Op{v.checkCluster(), store.CheckOp{Path: statePath, Version: version}}
}

// setState returns the operations that write /seq, if it is as it was read.
func (v found) setState(st State) []store.Op {
	return setVersion(store.SetOp{Path: statePath, Data: st.marshal(), Version: v.version})
}

func (v found) checkCluster() store.Op {
	//mutant:s10-cluster by TestNoBlockIsTakenInAnEarlierIncarnation -> version := int32(store.AnyVersion)
	version := v.clusterVersion
	return store.CheckOp{Path: clusterPath, Version: version}
}

// parseFound parses what GetAll returned for clusterPath, statePath and, if there is one, a record's path.
func parseFound(read []store.Record) (v found, err error) {
	if read[0].Found {
		v.cluster, v.clusterVersion = new(clusterRecord), read[0].Stat.Version
		if err := json.Unmarshal(read[0].Data, v.cluster); err != nil || v.cluster.UUID == "" {
			return found{}, fmt.Errorf("%s is not a record of flaked: %.80q", clusterPath, read[0].Data)
		}
	}
	if read[1].Found {
		v.state, v.version, v.written = new(State), read[1].Stat.Version, read[1].Stat.Mtime
		if err := json.Unmarshal(read[1].Data, v.state); err != nil || v.state.Cluster == "" {
			return found{}, fmt.Errorf("%s is not a record of flaked: %.80q", statePath, read[1].Data)
		}
		v.state.Incarnation = max(0, v.incarnation())
	}
	if len(read) > 2 && read[2].Found {
		r, err := parseRecord(read[2].Data)
		if err != nil {
			return found{}, err
		}
		v.record, v.stat = &r, read[2].Stat
	}
	return v, nil
}
