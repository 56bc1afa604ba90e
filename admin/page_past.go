package admin

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/lineproto"
)

const (
	// pastKept is how far the page's charts go back.
	pastKept = 10 * time.Minute
	// sampleEvery is the time between two samples of the node's counters.
	sampleEvery = 2 * time.Second
	// offsetEvery is the shortest time between two records of clock offsets. Readings in
	// between are merged: the largest offset of each worker is kept.
	offsetEvery = 5 * time.Second
	// maxTraced limits whose clock offsets are kept: those of workers below it. It keeps
	// the memory below 4 MB with every layout.
	maxTraced = 4096
)

// past is the history that the page's charts show, pastKept long.
type past struct {
	mu      sync.Mutex // guards what follows
	samples []sample   // oldest first
	clocks  []clocks   // oldest first
}

// sample is the node's counters at one moment.
type sample struct {
	at         time.Time
	ok, failed int64
	ids        int64
	durations  []int64 // by bucket
	bucketEnds []float64
}

// clocks are the clock offsets at one moment, in ms. ms[w] is that of worker w, NaN if it is
// not known, and uncertain[w] its uncertainty. A nil ms means that ZooKeeper could not be read.
type clocks struct {
	at            time.Time
	ms, uncertain []float32
}

// note adds a sample. more is the number of IDs handed out over HTTP.
func (p *past) note(at time.Time, c lineproto.Counters, more int64) {
	s := sample{at: at, ids: c.IDs + more, durations: c.Durations.N, bucketEnds: c.Durations.Bounds}
	for _, r := range c.Requests {
		if r.Result == "OK" {
			s.ok += r.N
		} else {
			s.failed += r.N
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(slices.DeleteFunc(p.samples, func(old sample) bool { return at.Sub(old.at) > pastKept }), s)
}

// noteClocks adds the clock offsets of a reading of the slots. ok is false if the reading
// failed.
func (p *past) noteClocks(at time.Time, found clusterview.Report, ok bool) {
	now := clocks{at: at}
	if ok {
		now.ms = []float32{}
		for _, w := range found.Workers { // by number
			if w.Worker >= maxTraced {
				break
			}
			for len(now.ms) <= w.Worker {
				now.ms, now.uncertain = append(now.ms, float32(math.NaN())), append(now.uncertain, 0)
			}
			if ms, uncertain, known := w.Offset(); known {
				now.ms[w.Worker], now.uncertain[w.Worker] = float32(ms), float32(uncertain)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clocks = slices.DeleteFunc(p.clocks, func(old clocks) bool { return at.Sub(old.at) > pastKept })
	if n := len(p.clocks); n > 0 && ok && p.clocks[n-1].ms != nil && at.Sub(p.clocks[n-1].at) < offsetEvery {
		p.clocks[n-1] = furthest(p.clocks[n-1], now)
		return
	}
	if n := len(p.clocks); n > 0 && !ok && p.clocks[n-1].ms == nil {
		return
	}
	p.clocks = append(p.clocks, now)
}

// furthest returns the larger offset of each worker, by absolute value, at the time of a. It does
// not change a, which a chart may be reading.
func furthest(a, b clocks) clocks {
	out := clocks{at: a.at, ms: slices.Clone(a.ms), uncertain: slices.Clone(a.uncertain)}
	for w, ms := range b.ms {
		switch {
		case w >= len(out.ms):
			out.ms, out.uncertain = append(out.ms, ms), append(out.uncertain, b.uncertain[w])
		case out.ms[w] != out.ms[w] || math.Abs(float64(ms)) > math.Abs(float64(out.ms[w])):
			out.ms[w], out.uncertain[w] = ms, b.uncertain[w]
		}
	}
	return out
}

func (p *past) all() ([]sample, []clocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.samples), slices.Clone(p.clocks)
}

// While no page is open, the slots are still read, so that a page opened later can show the
// past. idleReads is how many records a second all nodes of a cluster together read for
// that. If one node would then read less often than every idleMost, it does not read.
const (
	idleReads = 50
	idleMost  = time.Minute
)

// used returns the most workers of the cluster that may ever have been held, as this node knows.
func (s *Server) used() (most int) {
	for _, w := range s.cfg.Workers() {
		most = max(most, w.Cluster.Used)
	}
	return most
}

// remember samples the counters and calls slots.idle until ctx ends.
func (s *Server) remember(ctx context.Context) {
	next := time.NewTimer(s.cfg.Until(sampleEvery))
	defer next.Stop()
	// The random delay spreads the readings of nodes that start at the same time.
	first := time.Now().Add(slotsEvery + time.Duration(rand.Int64N(int64(slotsEvery))))
	for {
		now := time.Now()
		s.pages.past.note(now, s.cfg.Counters(), s.made.Load())
		if now.After(first) {
			s.slots.idle(s.used())
		}
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(s.cfg.Until(sampleEvery))
		}
	}
}
