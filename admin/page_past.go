package admin

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/lineproto"
)

const (
	// pastKept is how far the page's charts go back.
	pastKept = 10 * time.Minute
	// sampleEvery is how often the node's own counters are noted.
	sampleEvery = 2 * time.Second
	// offsetEvery is how close together clocks are noted: readings in between
	// count as one, by whatever was furthest off.
	offsetEvery = 5 * time.Second
	// maxTraced is how many workers have their clocks noted: what is kept stays
	// below 2 MB whatever the layout.
	maxTraced = 4096
)

// past is what the last minutes were like.
type past struct {
	mu      sync.Mutex // guards what follows
	samples []sample   // oldest first
	clocks  []clocks   // oldest first
}

// sample is the counters at a moment.
type sample struct {
	at         time.Time
	ok, failed int64
	ids        int64
	durations  []int64 // by bucket
	bucketEnds []float64
}

// clocks are the offsets of one moment by worker, in ms; NaN where nothing is
// known. None at all: ZooKeeper could not be read.
type clocks struct {
	at time.Time
	ms []float32
}

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
	first := slices.IndexFunc(p.samples, func(old sample) bool { return at.Sub(old.at) <= pastKept })
	if first < 0 {
		first = len(p.samples)
	}
	p.samples = append(slices.Delete(p.samples, 0, first), s)
}

// noteClocks remembers a reading of the slots; ok is whether it was one.
func (p *past) noteClocks(at time.Time, found Slots, ok bool) {
	now := clocks{at: at}
	if ok {
		size := 0
		for _, w := range found.Workers {
			if w.Worker < maxTraced {
				size = max(size, w.Worker+1)
			}
		}
		now.ms = make([]float32, size)
		for i := range now.ms {
			now.ms[i] = float32(math.NaN())
		}
		for _, w := range found.Workers {
			if w.OffsetMs != nil && w.Worker < size {
				now.ms[w.Worker] = float32(*w.OffsetMs)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first := slices.IndexFunc(p.clocks, func(old clocks) bool { return at.Sub(old.at) <= pastKept })
	if first < 0 {
		first = len(p.clocks)
	}
	p.clocks = slices.Delete(p.clocks, 0, first)
	if n := len(p.clocks); n > 0 && ok && p.clocks[n-1].ms != nil && at.Sub(p.clocks[n-1].at) < offsetEvery {
		p.clocks[n-1].ms = furthest(p.clocks[n-1].ms, now.ms)
		return
	}
	if n := len(p.clocks); n > 0 && !ok && p.clocks[n-1].ms == nil {
		return
	}
	p.clocks = append(p.clocks, now)
}

// furthest is the larger offset of each worker. It leaves a as it is: charts
// are drawn of it.
func furthest(a, b []float32) []float32 {
	if len(b) > len(a) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, v := range b {
		if out[i] != out[i] || math.Abs(float64(v)) > math.Abs(float64(out[i])) {
			out[i] = v
		}
	}
	return out
}

func (p *past) all() ([]sample, []clocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.samples), slices.Clone(p.clocks)
}

// idleReads is what all nodes of a cluster together ask of ZooKeeper a second
// for pages that nobody looks at yet, so that they have a past; and idleMost
// how seldom that is worth it.
const (
	idleReads = 50
	idleMost  = time.Minute
)

// remember notes what happens until the context ends.
func (s *Server) remember(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	// A cluster whose nodes start together does not read it together.
	first := time.Now().Add(slotsEvery + time.Duration(rand.Int64N(int64(slotsEvery))))
	for {
		now := time.Now()
		s.pages.past.note(now, s.cfg.Counters(), s.made.Load())
		if now.After(first) {
			s.slots.idle()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
