package client

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"
)

// minShare is the least time that a node is given to answer, however near a
// call's deadline is: less would take busy nodes for dead ones.
const minShare = 25 * time.Millisecond

// engage has one more lane look at the queue.
func (c *Client) engage() {
	switch last := len(c.idle) - 1; {
	case last >= 0:
		c.idle[last].rouse()
		c.idle = c.idle[:last]
	case c.lanes < c.cfg.Conns:
		c.lanes++
		l := newLane(c)
		c.start(l.run)
	}
}

// assign gives a lane a job. Where there is none it is among the idle ones when
// assign returns, and has to come again after wait, if that is not 0.
func (c *Client) assign(l *lane) (ready bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.settling {
		l.settling = false
		c.settling--
	}
	if i := slices.Index(c.idle, l); i >= 0 { // it came by itself
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	if c.closed {
		return false, 0
	}
	if len(c.queue) > 0 {
		now := time.Now()
		c.probe(now)
		n, others, until := c.pick(now)
		if n != nil {
			c.fill(&l.job, n, others, now)
			if len(c.queue) > 0 {
				c.engage()
			}
			if len(l.job.calls) > 0 {
				return true, 0
			}
		} else {
			c.giveUp(until)
			if len(c.queue) > 0 {
				wait = max(until.Sub(now), time.Microsecond)
			}
		}
	}
	c.idle = append(c.idle, l)
	return false, wait
}

// pick is the node to ask, and whether there are others to ask after it, which do
// well. nil:
// none may be asked before until. One that failed is asked only when there is
// no other: it is probed by itself, at no caller's cost. One that was but slow
// comes before those that have to be left alone.
func (c *Client) pick(now time.Time) (n *node, others bool, until time.Time) {
	for i := range c.nodes {
		if o := c.nodes[(c.turn+i)%len(c.nodes)]; n == nil || o.before(n) {
			n = o
		}
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

// fill makes a job of the calls at the head of the queue.
func (c *Client) fill(j *job, n *node, others bool, now time.Time) {
	j.node, j.calls, j.want = n, j.calls[:0], 0
	j.share = c.cfg.Timeout
	used := 0
	for _, k := range c.queue {
		if k.isAbandoned() {
			used++
			continue
		}
		if k.last != nil && !k.deadline.After(now) {
			used++
			k.deliver(nil, &unavailable{nil, k.last})
			continue
		}
		if j.want > 0 && (j.want+k.want > c.cfg.MaxBatch || n.most > 0 && j.want+k.want > n.most) {
			break
		}
		used++
		j.want += k.want
		j.calls = append(j.calls, k)
		k.asked = now
		switch left := k.deadline.Sub(now); {
		case others:
			// So that there is time for one of them, should this one be silent.
			j.share = min(j.share, left/2)
		case len(c.nodes) > 1:
			j.share = min(j.share, left)
		}
	}
	j.share = max(j.share, min(minShare, c.cfg.Timeout))
	c.queue = slices.Delete(c.queue, 0, used)
	if len(j.calls) > 0 {
		c.stats.Requests += int64((j.want + c.cfg.MaxBatch - 1) / c.cfg.MaxBatch)
	}
}

// giveUp ends the calls that wait in vain, as no node may be asked before until.
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
		k.deliver(nil, &unavailable{nil, last})
		return true
	})
}

// settle hands out what a node answered, or sees what is to be done without.
func (c *Client) settle(l *lane, err error) {
	j, ids := &l.job, l.ids
	if err != nil {
		c.tell(c.unsettle(j, err))
		return
	}
	c.mu.Lock()
	l.settling = true
	c.settling++
	c.stats.IDs += int64(len(ids))
	news := c.inUse(j.node)
	c.mu.Unlock()
	for _, k := range j.calls {
		mine := ids[:k.want]
		ids = ids[k.want:]
		k.deliver(mine, nil) // and is its caller's from now on
	}
	c.tell(news)
}

// unsettle puts calls back that a node has not answered, or fails them.
func (c *Client) unsettle(j *job, err error) (news func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Failed++
	if c.closed {
		err = ErrClosed
	}
	if code(err) == "ERR" && len(j.calls) > 1 {
		// It may take no requests as large as several calls together.
		j.node.most = max(1, j.want/2)
		c.queue = slices.Insert(c.queue, 0, j.calls...)
		return nil
	}
	if c.closed || code(err) == "ERR" {
		for _, k := range j.calls {
			k.deliver(nil, err)
		}
		return nil
	}
	for _, k := range j.calls {
		k.last = err
	}
	// They have waited for longest.
	c.queue = slices.Insert(c.queue, 0, j.calls...)
	return c.outOfUse(j.node, err, j.share < c.cfg.Timeout)
}

// outOfUse benches a node, and returns what is to be told of it. A request that
// was on the way when another one failed says nothing new. hurried tells that
// the node had less than Timeout to answer.
func (c *Client) outOfUse(n *node, err error, hurried bool) (news func()) {
	now := time.Now()
	if n.until.After(now) && (!n.slow || hurried && errors.Is(err, os.ErrDeadlineExceeded)) {
		return nil
	}
	was := n.healthy()
	d := n.bench(err, now)
	n.slow = hurried && errors.Is(err, os.ErrDeadlineExceeded)
	if !was {
		return nil
	}
	return func() {
		c.cfg.Logger.Warn("flaked: a node is out of use", "addr", n.addr, "error", err, "for", d.Round(time.Millisecond).String())
	}
}

func (c *Client) inUse(n *node) (news func()) {
	if !n.restore() {
		return nil
	}
	for _, l := range c.idle { // they may have waited for that
		l.rouse()
	}
	return func() { c.cfg.Logger.Info("flaked: a node is in use again", "addr", n.addr) }
}

// tell logs news, in order and beside all else: a logger might ask for an ID, or
// stand still.
func (c *Client) tell(news func()) {
	if news == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.news) == maxNews {
		return
	}
	if c.news = append(c.news, news); len(c.news) == 1 {
		go c.report()
	}
}

// maxNews is how many lines wait for a logger that stands still.
const maxNews = 100

// report logs what there is to be told, and ends.
func (c *Client) report() {
	for {
		c.mu.Lock()
		news := c.news[0]
		c.mu.Unlock()
		news()
		c.mu.Lock()
		c.news = c.news[1:]
		left := len(c.news)
		c.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// probe sees whether nodes that failed do well again, where others do the work
// meanwhile.
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
			c.tell(c.probed(n, err))
		})
	}
}

func (c *Client) probed(n *node, err error) (news func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.probing = false
	switch {
	case c.closed:
		return nil
	case err == nil:
		return c.inUse(n)
	}
	return c.outOfUse(n, err, false)
}

// ready asks a node whether it would answer.
func (c *Client) ready(ctx context.Context, n *node) error {
	deadline := time.Now().Add(c.cfg.Timeout)
	conn, err := c.dial(ctx, n, deadline)
	if err != nil {
		return err
	}
	defer conn.close()
	return conn.ready(deadline)
}
