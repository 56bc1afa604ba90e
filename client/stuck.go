package client

import "time"

// A request for an ordered sequence waits for seconds while another node takes the place of a dead owner. Sequences and
// sections with other owners must not wait with it. So a connWorker that has waited for long counts no more, and
// another one may work.

// stuckAfter is the time after which a request for an ordered sequence waits for long.
const stuckAfter = 50 * time.Millisecond

// mayWork returns how many connWorkers there may be. mu is held.
func (p *pool) mayWork() int { return min(p.cfg.Conns+p.stuck, maxConns) }

// watch makes a connWorker with a new job stuck after stuckAfter. mu is held.
func (p *pool) watch(w *connWorker) {
	switch {
	case !p.owners.ordered(w.job.query.name):
	case w.late == nil:
		w.late = time.AfterFunc(stuckAfter, func() { p.markStuck(w) })
	default:
		w.late.Reset(stuckAfter)
	}
}

func (p *pool) markStuck(w *connWorker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.stuck || w.settling || w.retired || p.closed.Load() {
		return
	}
	w.stuck = true
	if p.stuck++; len(p.queue) > 0 {
		p.engage()
	}
}

// unstick ends what watch began. mu is held.
func (p *pool) unstick(w *connWorker) {
	if w.late != nil {
		w.late.Stop()
	}
	if w.stuck {
		w.stuck = false
		p.stuck--
	}
}
