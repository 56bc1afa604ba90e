package seq

import (
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// view is the records that a decision needs, as they were read together.
type view struct {
	sight
	leader   int64          // a time of ZooKeeper's leader before the read, Unix ms: see Rounds.look
	before   *record.Record // what the node knew of the record when the read was sent
	template *template      // that may create the sequence, nil: there is none
}

// sight is what was read for a mode: /cluster, /seq and the record together, and then what else it wants.
type sight struct {
	record.Found
	read   int64            // when the read of the record was sent, ns of AtMost
	got    timeguard.Moment // when it was answered
	keys   *record.Keyring  // nil: they were not read
	secret *store.Record    // the key of the record, nil: it was not read
}

// after returns what a write of the record of v leaves in ZooKeeper.
func (v sight) after(t blockWrite) sight {
	version := v.Stat.Version + 1
	if version == store.AnyVersion { // two writes were needed: see setVersion
		version++
	}
	v.Record, v.Stat, v.secret = &t.Record, store.Stat{Version: version}, nil
	if t.keys != nil {
		v.keys = t.keys.Written()
	}
	return v
}
