package seq

import (
	"context"
	"sync"

	"github.com/flaked/flaked/sequence"
)

// flight is one round of requests to the owner.
type flight struct {
	context.Context
	cancel         context.CancelFunc
	ask            Ask // without a name and a count
	owner, address string
	slowAt         int64 // when the node seems to be dead, ns of AtMost
	doubted        bool  // see doubt
}

// atOnce is relay.each. The last call needs no goroutine.
func atOnce(n int, f func(k int)) {
	var group sync.WaitGroup
	defer group.Wait()
	for k := range n - 1 {
		group.Go(func() { f(k) })
	}
	f(n - 1)
}

// nextBatch returns the requests to send. Without a flight they must look at the series again.
func (m *ordered) nextBatch() (batch []request, f *flight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, now := &m.passes, m.relay.now()
	batch, p.queue, p.flight = p.queue, nil, nil
	address := ""
	if m.mode == m && m.known.Kind() == Sequence { // else the name has another life, or was deleted
		address = m.target(now)
	}
	if len(batch) == 0 || address == "" || m.stale {
		p.passing = false
		return batch, nil
	}
	ctx, cancel := context.WithTimeout(m.relay.passing.ctx, patience)
	slow := slowAfter
	if m.known.Owner == "" {
		slow = slowTaker
	}
	p.flight = &flight{Context: ctx, cancel: cancel, owner: m.known.Owner, address: address, slowAt: now + int64(slow)}
	p.flight.ask = Ask{Address: address, Cluster: *m.relay.cluster.Load(),
		Of: sequence.Ownership{ID: m.known.ID, Owner: m.known.Owner, Term: m.known.Term}}
	m.relay.wakeAt(m.series, p.flight.slowAt)
	return batch, p.flight
}

// maxPass is the most positions that one request to the owner asks for.
const maxPass = 1_000_000

// byLane divides requests into those that share a request to the owner.
func byLane(batch []request) (all [][]request) {
	last := make(map[int]int) // by lane
	sums := make(map[int]int64)
	for _, r := range batch {
		k, ok := last[r.lane]
		if !ok || sums[r.lane]+r.n > maxPass {
			k = len(all)
			all, last[r.lane], sums[r.lane] = append(all, nil), k, 0
		}
		all[k] = append(all[k], r)
		sums[r.lane] += r.n
	}
	return all
}
