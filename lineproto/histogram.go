package lineproto

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts values. N[i] is the number of values above Bounds[i-1] and not above
// Bounds[i]. N has one element more than Bounds, for values above all bounds. Sum is
// the sum of the values.
type Histogram struct {
	Bounds []float64
	N      []int64
	Sum    float64
}

// Count returns the number of values.
func (h Histogram) Count() (n int64) {
	for _, k := range h.N {
		n += k
	}
	return n
}

const (
	// Buckets of durations: up to 1 us, 2 us, 4 us and so on to 2^21 us, and above.
	numDurations = 23
	// Buckets of sizes: 1, up to 4, up to 16 and so on to 4^10, and above.
	numSizes = 12
)

// durationBucket returns the bucket of a duration in ns.
func durationBucket(ns int64) int {
	return min(bits.Len64(uint64(max(0, ns-1))/uint64(time.Microsecond)), numDurations-1)
}

// sizeBucket returns the bucket of a number of IDs, at least 1.
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

// durations counts requests by how long they took. A duration begins when the engine
// has noticed the request's last byte. It ends when the kernel has accepted the reply,
// or the beginning of a long one. Requests of a connection that arrive together share one
// measured duration.
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
