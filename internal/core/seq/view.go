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

// view is the records that a decision needs, as they were read together.
type view struct {
	cluster        *clusterRecord // nil: missing
	clusterVersion int32
	state          *State // nil: missing
	version        int32  // of the state
	written        int64  // when the state was, Unix ms of ZooKeeper's leader
	record         *Record
	stat           store.Stat       // of the record
	leader         int64            // a time of ZooKeeper's leader before the read, Unix ms: see Issuer.look
	read           int64            // when the read was sent, ns of AtMost
	got            timeguard.Moment // when it was answered
	before         *Record          // what the node knew of the record when the read was sent
	keys           *keyring         // nil: they were not read
	secret         *store.Record    // the key of record, nil: it was not read
	template       *template        // that may create the sequence, nil: there is none
	sections       []entry          // of a family, by number, also of earlier lives. nil: they were not read
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
func (v view) incarnation() int64 {
	if v.cluster == nil {
		return -1
	}
	return v.cluster.Incarnation
}

// checks returns the operations without which nothing is written: /cluster and /seq must be as they were read (S10). So
// a node or an operator who does not know of a loss of data writes nothing.
func (v view) checks() []store.Op {
	version := v.version
	return []store.Op{v.checkCluster(), store.CheckOp{Path: statePath, Version: version}}
}

// setState returns the operations that write /seq, if it is as it was read.
func (v view) setState(st State) []store.Op {
	return setVersion(store.SetOp{Path: statePath, Data: st.marshal(), Version: v.version})
}

func (v view) checkCluster() store.Op {
	//mutant:s10-cluster by TestNoBlockIsTakenInAnEarlierIncarnation -> version := int32(store.AnyVersion)
	version := v.clusterVersion
	return store.CheckOp{Path: clusterPath, Version: version}
}

// parseView parses what GetAll returned for clusterPath, statePath and, if there is one, a record's path.
func parseView(found []store.Record) (v view, err error) {
	if found[0].Found {
		v.cluster, v.clusterVersion = new(clusterRecord), found[0].Stat.Version
		if err := json.Unmarshal(found[0].Data, v.cluster); err != nil || v.cluster.UUID == "" {
			return view{}, fmt.Errorf("%s is not a record of flaked: %.80q", clusterPath, found[0].Data)
		}
	}
	if found[1].Found {
		v.state, v.version, v.written = new(State), found[1].Stat.Version, found[1].Stat.Mtime
		if err := json.Unmarshal(found[1].Data, v.state); err != nil || v.state.Cluster == "" {
			return view{}, fmt.Errorf("%s is not a record of flaked: %.80q", statePath, found[1].Data)
		}
		v.state.Incarnation = max(0, v.incarnation())
	}
	if len(found) > 2 && found[2].Found {
		r, err := parseRecord(found[2].Data)
		if err != nil {
			return view{}, err
		}
		v.record, v.stat = &r, found[2].Stat
	}
	return v, nil
}
