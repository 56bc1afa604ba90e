package client

import (
	"slices"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// The states of a call. The connWorker that answers sets delivered, the caller that stops waiting
// sets abandoned. Only the first of the two can change the state from pending.
const (
	pending int32 = iota
	delivered
	abandoned
)

// query is the subject of a call: IDs, or values of a sequence.
type query struct {
	// verb is the beginning of a request: GET, or NEXT and a sequence.
	verb string
	// name is the sequence, "" for IDs.
	name string
	// oneLine: verb is a whole request, and the reply is one line of as many numbers as the call wants.
	oneLine bool
}

var forIDs = query{verb: "GET"}

// least is the least number that a reply can have: IDs begin at 1, and values at 0.
func (q query) least() int64 {
	if q.ofSequence() {
		return 0
	}
	return 1
}

// ofSequence reports whether the query is about a named sequence.
func (q query) ofSequence() bool { return q.name != "" }

// call is a caller's request for IDs or values, or a request for some for a stock.
type call struct {
	query
	want     int
	deadline time.Time
	state    atomic.Int32
	// numbers and err are written by the connWorker until the call is delivered, then only read.
	numbers []worker.ID // of length want
	one     [1]worker.ID
	err     error
	// last is the error of the last node that was asked, nil before one was. Guarded by
	// pool.mu.
	last error
	done chan struct{} // capacity 1, for delivery
	// timer ends calls whose context has no deadline. It is nil before the first such call.
	timer *time.Timer
	// stock gets the IDs of a call that no caller waits for. It is nil for other calls.
	stock *stock
	// alone: the call must not share a request. refused are the nodes that have refused it for a reason that is about
	// the sequence. Both are guarded by pool.mu.
	alone   bool
	refused []*node
	// asked is the time at which the call was last given to a connWorker.
	asked time.Time
}

func newCall() *call { return &call{done: make(chan struct{}, 1)} }

// reset makes a new call of one that was delivered, or that is fresh from newCall.
func (k *call) reset(q query, want int, deadline time.Time) {
	k.query, k.alone, k.refused = q, false, nil
	k.want, k.deadline, k.err, k.last = want, deadline, nil, nil
	k.state.Store(pending)
	if k.numbers = k.one[:]; want > 1 {
		k.numbers = make([]worker.ID, want)
	}
}

// alarm returns a channel that receives after d.
func (k *call) alarm(d time.Duration) <-chan time.Time {
	if k.timer == nil {
		k.timer = time.NewTimer(d)
	} else {
		k.timer.Reset(d)
	}
	return k.timer.C
}

// deliver ends a call with as many IDs as it wants, or with an error. The IDs of an
// abandoned call are lost.
func (k *call) deliver(numbers []worker.ID, err error) {
	if k.stock != nil {
		k.stock.end(numbers, k.asked)
		return
	}
	if !k.state.CompareAndSwap(pending, delivered) {
		return
	}
	copy(k.numbers, numbers)
	k.err = err
	k.done <- struct{}{}
}

func (k *call) isAbandoned() bool { return k.state.Load() == abandoned }

// endsInQueue reports whether the call needs no answer of a node any more: its caller has left, or its deadline has
// passed after a first try. It then fails the call.
func (k *call) endsInQueue(now time.Time) bool {
	late := k.last != nil && !k.deadline.After(now)
	if late {
		k.deliver(nil, ids.Unavailable(nil, k.last))
	}
	return late || k.isAbandoned()
}

// joins reports whether the call can share the request of a job.
func (k *call) joins(j *job) bool {
	return k.query == j.query && !k.oneLine && !k.alone && !j.calls[0].alone && !slices.Contains(k.refused, j.node)
}
