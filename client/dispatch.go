package client

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// minShare is the least time that a node has to answer, however close the deadline of a call
// is. With less, a busy node would count as failed.
const minShare = 25 * time.Millisecond

// engage wakes an idle connWorker. If there is none, it starts a connWorker, unless there are
// Config.Conns connWorkers already that are not stuck. The caller holds mu.
func (c *Client) engage() {
	switch last := len(c.idle) - 1; {
	case last >= 0:
		c.idle[last].wake()
		c.idle = c.idle[:last]
	case c.connWorkers < c.mayWork():
		c.connWorkers++
		w := newConnWorker(c)
		c.start(w.run)
	}
}

// assign gives connWorker w a job and returns true. If there is no job, w is in c.idle when assign
// returns, unless the client is closed. If wait is not 0, w must call assign again after
// wait, because calls are queued.
func (c *Client) assign(w *connWorker) (ready bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.settling {
		w.settling = false
		c.settling--
	}
	if i := slices.Index(c.idle, w); i >= 0 { // its timer woke it
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.unstick(w)
	if w.retired = c.connWorkers > c.mayWork(); w.retired {
		if c.connWorkers--; len(c.queue) > 0 {
			c.engage() // nobody else may look at the queue next
		}
	}
	if c.closed.Load() || w.retired {
		return false, 0
	}
	if split := c.cluster.split.Load(); split != nil {
		for _, k := range c.queue {
			k.deliver(nil, split)
		}
		c.queue = nil
	}
	if ready, wait = c.nextJob(w, time.Now()); !ready {
		c.idle = append(c.idle, w)
	}
	return ready, wait
}

// nextJob gives connWorker w a job for the call at the head of the queue. It returns false if there is none. If wait is
// not 0, calls are queued that can be tried again after it. The caller holds mu.
func (c *Client) nextJob(w *connWorker, now time.Time) (ready bool, wait time.Duration) {
	// pick chooses the node for the head. fill must not drop the head, and give the next call to a node that refused it.
	for len(c.queue) > 0 && c.queue[0].endsInQueue(now) {
		c.queue = c.queue[1:]
	}
	if len(c.queue) == 0 {
		return false, 0
	}
	c.probe(now)
	head := c.queue[0]
	n, others, until := c.pick(now, head)
	switch {
	case n != nil:
		c.fill(&w.job, n, others, now)
		if len(c.queue) > 0 {
			c.engage()
		}
		c.watch(w)
		return true, 0
	case len(head.refused) > 0: // the nodes that have not refused it are down
		c.queue = c.queue[1:]
		c.retryLater(head, head.last)
		return false, time.Microsecond
	}
	if c.giveUp(until); len(c.queue) > 0 {
		wait = max(until.Sub(now), time.Microsecond)
	}
	return false, wait
}

// pick returns the node to ask, and whether another node is healthy. If no node may be asked
// now, n is nil and until is when one may be. Healthy nodes come first, then slow ones, then
// failed ones. While one node is healthy, failed ones get no calls: probe tests them instead,
// so that no call waits for them. A slow node may be asked at any time.
// Nodes that have refused the call are left out. A healthy owner of the call's sequence comes before all others.
func (c *Client) pick(now time.Time, k *call) (n *node, others bool, until time.Time) {
	for i := range c.nodes {
		if o := c.nodes[(c.turn+i)%len(c.nodes)]; !slices.Contains(k.refused, o) && (n == nil || o.before(n)) {
			n = o
		}
	}
	if o := c.owners.of(k.name); o != nil && o.healthy() && !slices.Contains(k.refused, o) {
		n = o
	}
	if c.cfg.Spread {
		c.turn = (c.turn + 1) % len(c.nodes)
	}
	if !n.healthy() && !n.slow && n.until.After(now) {
		return nil, false, n.until
	}
	others = slices.ContainsFunc(c.nodes, func(o *node) bool { return o != n && o.healthy() })
	return n, others, now
}

// fill makes a job of the head of the queue, for which pick has chosen n, and of those calls after it that join it, as
// many as fit into one request. It drops calls that end in the queue.
func (c *Client) fill(j *job, n *node, others bool, now time.Time) {
	j.node, j.calls, j.want = n, j.calls[:0], 0
	j.share = c.cfg.Timeout
	full := false
	c.queue = slices.DeleteFunc(c.queue, func(k *call) bool {
		switch {
		case full:
			return false
		case len(j.calls) == 0: // the head
		case k.endsInQueue(now):
			return true
		case !k.joins(j):
			return false
		case j.want+k.want > c.cfg.MaxBatch:
			full = true
			return false
		}
		j.want += k.want
		j.calls, j.query = append(j.calls, k), k.query
		k.asked = now
		c.limitShare(j, k, others, now)
		return true
	})
	c.fillMore(j, others, now)
	j.share = max(j.share, min(minShare, c.cfg.Timeout))
	j.look = c.owners.due(j.query.name, now)
}

// limitShare limits the time of a job by the deadline of a call.
func (c *Client) limitShare(j *job, k *call, others bool, now time.Time) {
	switch left := k.deadline.Sub(now); {
	case others:
		// If this node stays silent, there is time left to ask another one.
		j.share = min(j.share, left/2)
	case len(c.nodes) > 1:
		j.share = min(j.share, left)
	}
}

// giveUp fails the calls for which waiting is useless. No node may be asked before until, so
// it fails calls of the stock and calls whose deadline is not after until. It fails all calls
// if every node needs an operator.
func (c *Client) giveUp(until time.Time) {
	lastingly := true
	var last error
	for _, n := range c.nodes {
		lastingly = lastingly && lasting(n.last)
		if n.last != nil {
			last = n.last
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(k *call) bool {
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

// Functions that change a node's state return what to log. Their callers log it without mu.
func noNews() {}

// settle ends a connWorker's job, and those that shared its exchange.
func (c *Client) settle(w *connWorker, err error) {
	c.settleJob(w, &w.job, w.ids, err)
	for _, j := range w.job.more {
		if j.ids == nil && j.err == nil { // the exchange has failed before
			j.err = err
		}
		c.settleJob(w, j, j.ids, j.err)
	}
}

// settleJob delivers the IDs to the job's calls, or handles the error.
func (c *Client) settleJob(w *connWorker, j *job, ids []worker.ID, err error) {
	if split := c.cluster.split.Load(); split != nil {
		err = split
	}
	if err != nil {
		c.requeueOrFail(j, err)()
		return
	}
	c.mu.Lock()
	if !w.settling {
		w.settling = true
		c.settling++
	}
	news := c.inUse(j.node)
	c.mu.Unlock()
	for _, k := range j.calls {
		mine := ids[:k.want]
		ids = ids[k.want:]
		k.deliver(mine, nil) // k belongs to its caller now
	}
	news()
}

// requeueOrFail handles the error of a job: it puts the calls back into the queue, or fails them.
// It returns what to log.
func (c *Client) requeueOrFail(j *job, err error) (news func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		err = ids.ErrClosed
	}
	if reason(err) != "" && code(err) != ids.WRONGNODE && j.query.ofSequence() && !c.closed.Load() {
		c.refusedOfSequence(j, err)
		return noNews
	}
	if c.closed.Load() || code(err) == "ERR" || c.cluster.split.Load() != nil {
		for _, k := range j.calls {
			k.deliver(nil, err)
		}
		return noNews
	}
	for _, k := range j.calls {
		k.last = err
	}
	// These calls have waited longest, so they go to the head of the queue.
	c.queue = slices.Insert(c.queue, 0, j.calls...)
	return c.outOfUse(j.node, err, j.share < c.cfg.Timeout)
}

// outOfUse makes a node unhealthy after err, and returns what to log. hurried means
// that the node had less than Config.Timeout to answer. A timeout then makes it slow, not
// failed. outOfUse ignores further errors until the node may be asked again, because their
// requests were under way when the first one failed. Only a slow node may still fail.
func (c *Client) outOfUse(n *node, err error, hurried bool) (news func()) {
	now := time.Now()
	if n.until.After(now) && (!n.slow || hurried && errors.Is(err, os.ErrDeadlineExceeded)) {
		return noNews
	}
	was := n.healthy()
	d := n.bench(err, now)
	n.slow = hurried && errors.Is(err, os.ErrDeadlineExceeded)
	if !was {
		return noNews
	}
	return func() {
		c.cfg.Logger.Warn("flaked: node marked unhealthy", "address", n.addr, "error", err, "retry_in_ms",
			d.Milliseconds())
	}
}

// inUse makes a node healthy, and returns what to log.
func (c *Client) inUse(n *node) (news func()) {
	if !n.restore() {
		return noNews
	}
	for _, w := range c.idle { // they may wait for a node
		w.wake()
	}
	return func() { c.cfg.Logger.Info("flaked: node healthy again", "address", n.addr) }
}

// probe starts to ask failed nodes whether they are ready, if another node is healthy.
func (c *Client) probe(now time.Time) {
	if !slices.ContainsFunc(c.nodes, (*node).healthy) {
		return
	}
	for _, n := range c.nodes {
		if n.healthy() || n.probing || n.until.After(now) {
			continue
		}
		n.probing = true
		c.start(func(ctx context.Context) {
			err := c.ready(ctx, n)
			c.probed(n, err)()
		})
	}
}

// probed ends a probe, which found err. It returns what to log.
func (c *Client) probed(n *node, err error) (news func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.probing = false
	switch {
	case c.closed.Load():
		return noNews
	case err == nil:
		return c.inUse(n)
	}
	return c.outOfUse(n, err, false)
}

// ready asks a node whether it would answer a GET, on a connection of its own.
func (c *Client) ready(ctx context.Context, n *node) error {
	deadline := time.Now().Add(c.cfg.Timeout)
	conn, err := c.dial(ctx, n, deadline)
	if err != nil {
		return err
	}
	defer conn.close()
	return conn.ready(deadline)
}
