package client

import (
	"slices"
	"time"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// The names of a family are many, and each needs a request of its own. Those that the owner of their sections answers
// from memory share an exchange: their requests are sent together.

// maxTogether is the most jobs whose requests are sent to a node at once.
const maxTogether = window

// fillMore adds jobs that share the exchange of j: calls that were never refused, for sequences that the node owns. mu
// is held.
func (p *pool) fillMore(j *job, others bool, now time.Time) {
	j.more = nil
	if !j.node.healthy() || !p.goesTogether(j.calls[0], j) || j.want > p.cfg.MaxBatch {
		return
	}
	full := false
	p.queue = slices.DeleteFunc(p.queue, func(k *call) bool {
		if full || !p.goesTogether(k, j) || k.isAbandoned() || k.want > p.cfg.MaxBatch || k.query == j.query {
			return false
		}
		at := slices.IndexFunc(j.more, func(m *job) bool { return m.query == k.query })
		switch {
		case at < 0 && len(j.more) == maxTogether-1:
			full = true
			return false
		case at < 0:
			at = len(j.more)
			j.more = append(j.more, &job{node: j.node, query: k.query})
		case j.more[at].want+k.want > p.cfg.MaxBatch:
			return false
		}
		m := j.more[at]
		m.calls, m.want = append(m.calls, k), m.want+k.want
		k.asked = now
		p.limitShare(j, k, others, now)
		return true
	})
	for _, m := range j.more {
		m.share = j.share
	}
}

// goesTogether reports whether a call may share the exchange of a job with others.
func (p *pool) goesTogether(k *call, j *job) bool {
	return !k.oneLine && !k.alone && k.last == nil && k.ofSequence() && p.owners.of(k.name) == j.node
}

// getAll sends the requests of a job and of those that share its exchange. It returns the values of the job, or its
// error. The others end with theirs.
func (c *conn) getAll(j *job) ([]worker.ID, error) {
	c.out = c.out[:0]
	for _, m := range append([]*job{j}, j.more...) {
		m.numbers, m.err = nil, nil
		c.request(m.query, m.want)
	}
	if err := c.send(time.Now().Add(j.share)); err != nil {
		return nil, err
	}
	var failed error // the connection
	for _, m := range append([]*job{j}, j.more...) {
		if m.err = failed; failed == nil {
			m.numbers, m.err = dialog.Numbers(c.in, make([]worker.ID, 0, m.want), m.want, 0)
		}
		if m.err != nil && !isRefusal(m.err) {
			failed = m.err
		}
	}
	if failed == nil {
		c.done()
	}
	return j.numbers, j.err
}
