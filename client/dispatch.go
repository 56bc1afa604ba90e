package client

import (
	"slices"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// minShare is the least time that a node has to answer, however close the deadline of a call
// is. With less, a busy node would count as failed.
const minShare = 25 * time.Millisecond

// atOnce is the shortest wait of a connWorker while calls are queued. 0 would mean that none is.
const atOnce = time.Microsecond

// engage wakes an idle connWorker. If there is none, it starts a connWorker, unless there are Config.Conns connWorkers
// already that are not stuck. mu is held.
func (p *pool) engage() {
	switch last := len(p.idle) - 1; {
	case last >= 0:
		p.idle[last].wake()
		p.idle = p.idle[:last]
	case p.connWorkers < p.mayWork():
		p.connWorkers++
		w := newConnWorker(p)
		p.start(w.run)
	}
}

// assign gives connWorker w a job and returns true. If there is no job, w is in p.idle when assign
// returns, unless the client is closed. If wait is not 0, w must call assign again after
// wait, because calls are queued.
func (p *pool) assign(w *connWorker) (ready bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.settling {
		w.settling = false
		p.settling--
	}
	if i := slices.Index(p.idle, w); i >= 0 { // its timer woke it
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.unstick(w)
	if w.retired = p.connWorkers > p.mayWork(); w.retired {
		if p.connWorkers--; len(p.queue) > 0 {
			p.engage() // nobody else may look at the queue next
		}
	}
	if p.closed.Load() || w.retired {
		return false, 0
	}
	if split := p.cluster.split.Load(); split != nil {
		for _, k := range p.queue {
			k.deliver(nil, split)
		}
		p.queue = nil
	}
	if ready, wait = p.nextJob(w, time.Now()); !ready {
		p.idle = append(p.idle, w)
	}
	return ready, wait
}

// nextJob gives connWorker w a job for the call at the head of the queue. It returns false if there is none. If wait is
// not 0, calls are queued that can be tried again after it. mu is held.
func (p *pool) nextJob(w *connWorker, now time.Time) (ready bool, wait time.Duration) {
	// pick chooses the node for the head. fill must not drop the head, and give the next call to a node that refused
	// it.
	for len(p.queue) > 0 && p.queue[0].endsInQueue(now) {
		p.queue = p.queue[1:]
	}
	if len(p.queue) == 0 {
		return false, 0
	}
	p.probe(now)
	head := p.queue[0]
	n, others, until := p.pick(now, head)
	switch {
	case n != nil:
		p.fill(&w.job, n, others, now)
		if len(p.queue) > 0 {
			p.engage()
		}
		p.watch(w)
		return true, 0
	case len(head.refused) > 0: // the nodes that have not refused it are down
		p.queue = p.queue[1:]
		p.retryLater(head, head.last)
		return false, atOnce // to look at the next call
	}
	if p.giveUp(until); len(p.queue) > 0 {
		wait = max(until.Sub(now), atOnce)
	}
	return false, wait
}

// pick returns the node to ask, and whether another node is healthy. If no node may be asked now, n is nil and one may
// be asked at until. Healthy nodes come first, then slow ones, then failed ones. While one node is healthy, failed ones
// get no calls: probe tests them instead, so that no call waits for them. A slow node may be asked at any time. Nodes
// that have refused the call are left out. A healthy owner of the call's sequence comes before all others.
func (p *pool) pick(now time.Time, k *call) (n *node, others bool, until time.Time) {
	for i := range p.nodes {
		if o := p.nodes[(p.turn+i)%len(p.nodes)]; !slices.Contains(k.refused, o) && (n == nil || o.before(n)) {
			n = o
		}
	}
	if o := p.owners.of(k.name); o != nil && o.healthy() && !slices.Contains(k.refused, o) {
		n = o
	}
	if p.cfg.Spread {
		p.turn = (p.turn + 1) % len(p.nodes)
	}
	if !n.healthy() && !n.slow && n.until.After(now) {
		return nil, false, n.until
	}
	others = slices.ContainsFunc(p.nodes, func(o *node) bool { return o != n && o.healthy() })
	return n, others, now
}

// fill makes a job of the head of the queue, for which pick has chosen n, and of those calls after it that join it, as
// many as fit into one request. It drops calls that end in the queue.
func (p *pool) fill(j *job, n *node, others bool, now time.Time) {
	j.node, j.calls, j.want = n, j.calls[:0], 0
	j.share = p.cfg.Timeout
	full := false
	p.queue = slices.DeleteFunc(p.queue, func(k *call) bool {
		switch {
		case full:
			return false
		case len(j.calls) == 0: // the head
		case k.endsInQueue(now):
			return true
		case !k.joins(j):
			return false
		case j.want+k.want > p.cfg.MaxBatch:
			full = true
			return false
		}
		j.want += k.want
		j.calls, j.query = append(j.calls, k), k.query
		k.asked = now
		p.limitShare(j, k, others, now)
		return true
	})
	p.fillMore(j, others, now)
	j.share = max(j.share, min(minShare, p.cfg.Timeout))
	j.look = p.owners.beginLook(j.query.name, now)
}

// limitShare limits the time of a job by the deadline of a call.
func (p *pool) limitShare(j *job, k *call, others bool, now time.Time) {
	switch left := k.deadline.Sub(now); {
	case others:
		// If this node stays silent, there is time left to ask another one.
		j.share = min(j.share, left/2)
	case len(p.nodes) > 1:
		j.share = min(j.share, left)
	}
}

// giveUp fails the calls for which waiting is useless. No node may be asked before until, so
// it fails calls of the stock and calls whose deadline is not after until. It fails all calls
// if every node needs an operator.
func (p *pool) giveUp(until time.Time) {
	lastingly := true
	var last error
	for _, n := range p.nodes {
		lastingly = lastingly && lasting(n.last)
		if n.last != nil {
			last = n.last
		}
	}
	p.queue = slices.DeleteFunc(p.queue, func(k *call) bool {
		if k.isAbandoned() {
			return true
		}
		if k.stock == nil && !lastingly && k.deadline.After(until) {
			return false
		}
		if k.last != nil {
			last = k.last
		}
		k.deliver(nil, ids.Unavailable(nil, last))
		return true
	})
}

// settle ends a connWorker's job, and those that shared its exchange.
func (p *pool) settle(w *connWorker, err error) {
	p.settleJob(w, &w.job, w.numbers, err)
	for _, j := range w.job.more {
		if j.numbers == nil && j.err == nil { // the exchange has failed before
			j.err = err
		}
		p.settleJob(w, j, j.numbers, j.err)
	}
}

// settleJob delivers the IDs to the job's calls, or handles the error.
func (p *pool) settleJob(w *connWorker, j *job, numbers []worker.ID, err error) {
	if split := p.cluster.split.Load(); split != nil {
		err = split
	}
	if err != nil {
		p.requeueOrFail(j, err)()
		return
	}
	p.mu.Lock()
	if !w.settling {
		w.settling = true
		p.settling++
	}
	news := p.markHealthy(j.node)
	p.mu.Unlock()
	for _, k := range j.calls {
		mine := numbers[:k.want]
		numbers = numbers[k.want:]
		k.deliver(mine, nil) // k belongs to its caller now
	}
	news()
}

// requeueOrFail handles the error of a job: it puts the calls back into the queue, or fails them.
// It returns what to log.
func (p *pool) requeueOrFail(j *job, err error) (news func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		err = ids.ErrClosed
	}
	if reason(err) != "" && code(err) != ids.WRONGNODE && j.query.ofSequence() && !p.closed.Load() {
		p.sequenceRefused(j, err)
		return noNews
	}
	if p.closed.Load() || code(err) == "ERR" || p.cluster.split.Load() != nil {
		for _, k := range j.calls {
			k.deliver(nil, err)
		}
		return noNews
	}
	for _, k := range j.calls {
		k.last = err
	}
	// These calls have waited longest, so they go to the head of the queue.
	p.queue = slices.Insert(p.queue, 0, j.calls...)
	return p.markUnhealthy(j.node, err, j.share < p.cfg.Timeout)
}
