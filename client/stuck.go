package client

import "time"

// A request for an ordered sequence waits for seconds while another node takes the place of a dead owner. Sequences and
// sections with other owners must not wait with it. So a connWorker that has waited for long counts no more, and
// another one may work.

// stuckAfter is the time after which a request for an ordered sequence waits for long.
const stuckAfter = 50 * time.Millisecond

// mayWork returns how many connWorkers there may be. The caller holds mu.
func (c *Client) mayWork() int { return min(c.cfg.Conns+c.stuck, maxConns) }

// watch makes a connWorker with a new job stuck after stuckAfter. The caller holds mu.
func (c *Client) watch(l *connWorker) {
	switch {
	case !c.owners.ordered(l.job.query.name):
	case l.late == nil:
		l.late = time.AfterFunc(stuckAfter, func() { c.markStuck(l) })
	default:
		l.late.Reset(stuckAfter)
	}
}

func (c *Client) markStuck(l *connWorker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.stuck || l.settling || l.retired || c.closed.Load() {
		return
	}
	l.stuck = true
	if c.stuck++; len(c.queue) > 0 {
		c.engage()
	}
}

// unstick ends what watch began. The caller holds mu.
func (c *Client) unstick(l *connWorker) {
	if l.late != nil {
		l.late.Stop()
	}
	if l.stuck {
		l.stuck = false
		c.stuck--
	}
}
