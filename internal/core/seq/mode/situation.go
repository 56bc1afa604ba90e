package mode

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Situation has the inputs of a decision that are not in the records.
type Situation struct {
	// AtMost and AtLeast are the time at which the read of the records was sent, or the present time if nothing was
	// read. They are ns of two clocks: see timeguard.Elapsed. A node goes by AtMost to end what it may do for some
	// time, and by AtLeast to end a wait for others.
	AtMost, AtLeast int64
	// SeqTime is the sequence time at that moment, ms.
	SeqTime int64
	// Unconfirmed is the time left until this node may take positions, 0 if it may.
	Unconfirmed time.Duration
	Spread      time.Duration // the shortest time between two writes of one sequence
	// Volatile: what the node holds is lost when the process ends, or when the node stops and releases its worker.
	Volatile  bool
	Nonce, By string // of the next write: see record.Record
	Session   int64  // the present connection to ZooKeeper
}

// mostVolatile is the longest supply of a node whose blocks do not outlast it: what is left is lost with it.
const mostVolatile = time.Minute

// Supply returns how long a block should last.
func (sit Situation) Supply(r *record.Record) time.Duration {
	if sit.Volatile {
		return min(r.Supply(), mostVolatile)
	}
	return r.Supply()
}

// View has the records that were read for a decision: first /cluster, /seq and the sequence's record together, and then
// its keys.
type View struct {
	record.Snapshot
	SentAt      int64               // when the read of the record was sent, ns of AtMost
	AnsweredAt  timeguard.Moment    // when that was answered
	RequestKeys *record.RequestKeys // nil: they were not read
	MapKey      *store.Record       // nil: it was not read
}
