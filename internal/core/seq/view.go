package seq

import (
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// view is the records that a decision needs, as they were read together.
type view struct {
	mode.View
	leader   int64          // a time of ZooKeeper's leader before the read, Unix ms: see Rounds.look
	before   *record.Record // what the node knew of the record when the read was sent
	template *template      // that may create the sequence, nil: there is none
}
