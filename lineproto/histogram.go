package lineproto

import (
	"math/bits"
	"time"

	"go.uber.org/atomic"
)

// Histogram is how values are spread. N[i] of them are above Bounds[i-1] and
// not above Bounds[i]; N has one more, for those above all bounds.
type Histogram struct {
	Bounds []float64
	N      []int64
	Sum    float64
}

// Count is how many values there are.
func (h Histogram) Count() (n int64) {
	for _, k := range h.N {
		n += k
	}
	return n
}

const (
	// Durations: up to 1 us, 2 us, 4 us and so on to 2^21 us, and above.
	numDurations = 23
	// Sizes: 1, up to 4, up to 16 and so on to 4^10, and above.
	numSizes = 12
)

// durationBucket is for durations in ns.
func durationBucket(ns int64) int {
	return min(bits.Len64(uint64(max(0, ns-1))/uint64(time.Microsecond)), numDurations-1)
}

// sizeBucket is for counts of 1 and more.
func sizeBucket(n int) int { return min((bits.Len(uint(n-1))+1)/2, numSizes-1) }

func histogram(n []atomic.Int64, bound func(i int) float64, sum float64) Histogram {
	h := Histogram{Sum: sum}
	for i := range n {
		h.N = append(h.N, n[i].Load())
		if i < len(n)-1 {
			h.Bounds = append(h.Bounds, bound(i))
		}
	}
	return h
}

// durations are how long requests took: from when the last byte of one was
// noticed to when the kernel had the reply, or of a long one the beginning. Those
// that came together count with the same time, and in a loop one connection's
// time stands for those of a few others that were answered just before.
type durations struct {
	n   [numDurations]atomic.Int64
	sum atomic.Int64 // ns
}

func (d *durations) add(ns, requests int64) {
	d.n[durationBucket(ns)].Add(requests)
	d.sum.Add(ns * requests)
}

func (d *durations) histogram() Histogram {
	return histogram(d.n[:], func(i int) float64 { return float64(int64(1)<<i) / 1e6 }, float64(d.sum.Load())/1e9)
}

// times is what a loop has measured and not yet added to the server's
// durations: mostly all of a wakeup's are in one bucket.
type times struct {
	bucket int
	n, sum int64
}

func (t *times) add(d *durations, ns, requests int64) {
	if b := durationBucket(ns); b != t.bucket {
		t.fold(d)
		t.bucket = b
	}
	t.n += requests
	t.sum += ns * requests
}

func (t *times) fold(d *durations) {
	if t.n > 0 {
		d.n[t.bucket].Add(t.n)
		d.sum.Add(t.sum)
		t.n, t.sum = 0, 0
	}
}

// elapsed is a monotonic clock in ns, for durations.
func (s *Server) elapsed() int64 { return int64(time.Since(s.began)) }
