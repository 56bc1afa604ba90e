package client

import (
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/worker"
)

// The states of a call. The connWorker that answers sets delivered, the caller that stops waiting
// sets abandoned. Only the first of the two can change the state from pending.
const (
	pending int32 = iota
	delivered
	abandoned
)

// call is a caller's request for IDs, or a request for IDs for the stock.
type call struct {
	want     int
	deadline time.Time
	state    atomic.Int32
	// ids and err are written by the connWorker until the call is delivered, then only read.
	ids []worker.ID // of length want
	one [1]worker.ID
	err error
	// last is the error of the last node that was asked, nil before one was. Guarded by
	// Client.mu.
	last error
	done chan struct{} // capacity 1, for delivery
	// stock gets the IDs of a call that no caller waits for. It is nil for other calls.
	stock *stock
	// asked is the time at which the call was last given to a connWorker.
	asked time.Time
}

func newCall() *call { return &call{done: make(chan struct{}, 1)} }

// reset makes a new call of one that was delivered, or that is fresh from newCall.
func (k *call) reset(want int, deadline time.Time) {
	k.want, k.deadline, k.err, k.last = want, deadline, nil, nil
	k.state.Store(pending)
	if k.ids = k.one[:]; want > 1 {
		k.ids = make([]worker.ID, want)
	}
}

// deliver ends a call with as many IDs as it wants, or with an error. The IDs of an
// abandoned call are lost.
func (k *call) deliver(ids []worker.ID, err error) {
	if k.stock != nil {
		k.stock.filled(ids, k.asked)
		return
	}
	if !k.state.CompareAndSwap(pending, delivered) {
		return
	}
	copy(k.ids, ids)
	k.err = err
	k.done <- struct{}{}
}

func (k *call) isAbandoned() bool { return k.state.Load() == abandoned }
