package web

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
)

const (
	// sampleEvery is the time between two samples of the node's counters. The page shows the last pastSteps intervals:
	// 15 minutes.
	sampleEvery = 10 * time.Second
	pastSteps   = 90
	// rowSteps is the number of intervals in a minute, which is a row of the page's table.
	rowSteps = 6
)

// past has samples of the node's counters over the last 15 minutes. They take about 60 kB.
type past struct {
	// boot returns the machine's boot clock in ns, by which samples are taken. It counts suspend, and does not step.
	boot  func() int64
	began int64 // when the counters were 0, by boot

	mu      sync.Mutex // guards samples
	samples []sample   // oldest first; at least one and at most pastSteps + 1
}

// sample is the node's counters at one moment.
type sample struct {
	at         int64 // by the boot clock, in ns
	ok, failed int64 // requests
	ids        int64
	durations  lineproto.Histogram
	// offset is the clock's offset from that of ZooKeeper's leader in ms, NaN if no recent heartbeat has measured it.
	offset float64
}

func newPast(boot func() int64) *past {
	began := boot()
	return &past{boot: boot, began: began, samples: []sample{{at: began, offset: math.NaN()}}}
}

// run takes a sample at each multiple of sampleEvery until ctx is done.
func (p *past) run(ctx context.Context, take func(at int64) sample) {
	for {
		timer := time.NewTimer(sampleEvery - time.Duration(p.boot())%sampleEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		p.keep(take(p.boot()))
	}
}

// keep adds a sample, unless another call of run has just taken one, or the process has just started.
func (p *past) keep(s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.at-p.samples[len(p.samples)-1].at < int64(sampleEvery/2) {
		return
	}
	p.samples = append(p.samples, s)
	p.samples = slices.Delete(p.samples, 0, max(0, len(p.samples)-pastSteps-1))
}

// all returns the samples, oldest first.
func (p *past) all() []sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.samples)
}

// sampleOf returns a sample of the counters at a moment of the boot clock. It does no I/O.
func (s *Server) sampleOf(at int64, w node.Snapshot) sample {
	c := s.cfg.Counters()
	out := sample{at: at, ids: c.IDs + s.made.Load(), durations: c.Durations, offset: math.NaN()}
	for _, r := range c.Requests {
		if r.Result == "OK" {
			out.ok += r.N
		} else {
			out.failed += r.N
		}
	}
	age, every := w.ZooKeeper.HeartbeatAgeMs, w.ZooKeeper.HeartbeatMs
	recent := age != nil && (*age <= sampleEvery.Milliseconds() || !health.HeartbeatOverdue(*age, every))
	if w.Clock.OffsetMs != nil && recent {
		out.offset = *w.Clock.OffsetMs
	}
	return out
}

// The values that the page shows over time.
const (
	ofRequests = iota // a second
	ofIDs             // a second
	ofRefused         // a second
	ofLatency         // p99, in seconds
	ofOffset          // ms
	numValues
)

// values has what happened in an interval between two samples. NaN is not known.
type values [numValues]float64

func unknown() (v values) {
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

func between(a, b sample) (v values) {
	seconds := max(time.Duration(b.at-a.at).Seconds(), 0.001)
	v[ofRequests] = float64(b.ok+b.failed-a.ok-a.failed) / seconds
	v[ofIDs] = float64(b.ids-a.ids) / seconds
	v[ofRefused] = float64(b.failed-a.failed) / seconds
	v[ofLatency] = quantile(a.durations, b.durations, 0.99)
	v[ofOffset] = b.offset
	return v
}

// quantile returns the upper end of the bucket that contains quantile q of the durations from a to b, in seconds. It
// returns NaN if there are none, and twice the last end if the quantile is above all ends.
func quantile(a, b lineproto.Histogram, q float64) float64 {
	n, total := slices.Clone(b.N), int64(0)
	for i := range n {
		if i < len(a.N) {
			n[i] -= a.N[i]
		}
		total += n[i]
	}
	if total <= 0 || len(b.Bounds) == 0 {
		return math.NaN()
	}
	need := int64(math.Ceil(q * float64(total)))
	for i, k := range n[:len(b.Bounds)] {
		if need -= k; need <= 0 {
			return b.Bounds[i]
		}
	}
	return 2 * b.Bounds[len(b.Bounds)-1]
}

// stepOf returns the multiple of sampleEvery at which a sample was due.
func stepOf(at int64) int64 { return (at + int64(sampleEvery)/2) / int64(sampleEvery) }

// lastStep returns the step at which the charts end. It is that of the newest sample, unless one is missing since. now
// is the boot clock.
func lastStep(samples []sample, now int64) int64 {
	newest, due := stepOf(samples[len(samples)-1].at), now/int64(sampleEvery)
	if due-newest > 1 {
		return due
	}
	return newest
}

// overTime returns the values of the pastSteps intervals that end at step last, the oldest first. An interval has no
// sample if the node did not run, or if the process or the machine was stopped: its values are all unknown.
func overTime(samples []sample, last int64) (all [pastSteps]values, sampled [pastSteps]bool) {
	for i := range all {
		all[i] = unknown()
	}
	for i := 1; i < len(samples); i++ {
		at := int64(pastSteps-1) - last + stepOf(samples[i].at)
		if at >= 0 && samples[i].at-samples[i-1].at < 2*int64(sampleEvery) {
			all[at], sampled[at] = between(samples[i-1], samples[i]), true
		}
	}
	return all, sampled
}

// minute has the values of a minute that ends at a step.
type minute struct {
	end int64
	values
}

// byMinute returns the values of the last minutes up to step last, the newest first. It leaves out minutes that lack a
// sample.
func byMinute(samples []sample, last int64) (out []minute) {
	at := make(map[int64]int, len(samples))
	for i, s := range samples {
		at[stepOf(s.at)] = i
	}
	for end := last; end > last-pastSteps; end -= rowSteps {
		a, begins := at[end-rowSteps]
		if b, ends := at[end]; begins && ends && b-a == rowSteps {
			out = append(out, minute{end, between(samples[a], samples[b])})
		}
	}
	return out
}
