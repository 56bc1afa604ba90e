package client

import (
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/worker"
)

// What may become of a call. Whoever changes it from pending first has it: the
// lane that delivers, or the caller that no longer waits.
const (
	pending int32 = iota
	delivered
	abandoned
)

// call is a caller's demand, or one of the stock's.
type call struct {
	want     int
	deadline time.Time
	state    atomic.Int32
	// ids and err are the lane's until it has delivered.
	ids []worker.ID // of length want
	one [1]worker.ID
	err error
	// last is why no node has answered yet. Guarded by Client.mu.
	last error
	done chan struct{} // of one element, for delivery
	// stock is where the IDs go that no caller waits for; asked is when.
	stock *stock
	asked time.Time
}

func newCall() *call { return &call{done: make(chan struct{}, 1)} }

// reset makes a call that was delivered one of now.
func (k *call) reset(want int, deadline time.Time) {
	k.want, k.deadline, k.err, k.last = want, deadline, nil, nil
	k.state.Store(pending)
	if k.ids = k.one[:]; want > 1 {
		k.ids = make([]worker.ID, want)
	}
}

// deliver ends a call, with as many IDs as it wants or an error. IDs of a call
// that was abandoned are burnt.
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
