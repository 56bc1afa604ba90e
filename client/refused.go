package client

import (
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/ids"
)

// sizeReasons are those that a smaller request may end.
var sizeReasons = []string{"ceiling", "too-many", "exhausted"}

// retryValues is the least time after which a call is tried again that all nodes have refused.
const retryValues = 20 * time.Millisecond

// sequenceRefused handles a refusal that is about the sequence of a job and not about the node: it delivers the refusal
// to the calls, or puts them into the queue again. final: the client does not ask again. mu is held.
func (p *pool) sequenceRefused(j *job, err error) {
	final := code(err) != ids.NOTREADY
	if reason(err) == "unknown" && p.owners.ordered(j.query.name) { // the program decides whether it asks again
		final, err = true, ids.Unavailable(nil, err)
	}
	if len(j.calls) > 1 && slices.Contains(sizeReasons, reason(err)) {
		for _, k := range j.calls {
			k.alone = true
		}
		p.queue = slices.Insert(p.queue, 0, j.calls...)
		return
	}
	for _, k := range slices.Backward(j.calls) { // each goes to the head of the queue
		if final {
			k.deliver(nil, err)
			continue
		}
		k.last, k.refused = err, append(k.refused, j.node)
		if len(k.refused) < len(p.nodes) {
			p.queue = slices.Insert(p.queue, 0, k)
			continue
		}
		p.retryLater(k, err)
	}
}

// retryLater puts a call into the queue again after a moment, or fails it if its deadline comes first. mu is held.
func (p *pool) retryLater(k *call, err error) {
	d := retryValues
	if reply, ok := err.(*ids.ReplyError); ok {
		d = max(d, min(reply.RetryAfter(), time.Second))
	}
	if k.stock != nil || time.Now().Add(d).After(k.deadline) {
		k.deliver(nil, ids.Unavailable(nil, err))
		return
	}
	p.start(func(ctx context.Context) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if k.refused = nil; p.closed.Load() {
			k.deliver(nil, ids.ErrClosed)
			return
		}
		p.queue = append(p.queue, k)
		p.engage()
	})
}
