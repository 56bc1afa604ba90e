//go:build linux

package main

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/figures"
)

// Sample is one measurement.
type Sample struct {
	Case       string
	Who        string
	Goroutines int
	Round      int

	Seconds  float64
	IDs      int64
	Calls    int64
	CPU      float64 // seconds, user and system
	Mallocs  int64
	AheadMs  int64 // the largest lead of IDs over the clock
	PauseMs  int64 // the longest wait of a goroutine
	Twice    int64 // IDs that were given before
	Backward int64 // calls with a lower ID than the goroutine's last
	// Latency and age of IDs under a paced load, in nanoseconds.
	P50, P99, AgeP50, AgeP99 float64
}

// span is the IDs that one call returned: n of them from first.
type span struct{ first, n int64 }

// buffers holds the IDs of all calls of a measurement. newBuffers allocates and touches the
// memory once: a page fault during a measurement would count as time of the library.
type buffers []span

// spans is enough for the calls of the fastest contender in a measurement.
const spans = 24 << 20

func newBuffers() buffers {
	b := make(buffers, spans)
	for i := range b {
		b[i].n = 1
	}
	return b
}

// lookEvery is the number of calls between two readings of the clock. They are rare, so that
// the readings do not count as time of the calls.
const lookEvery = 256

// flatOut makes goroutines draw as fast as they can, until d has passed or one of them has
// no room left in its part of the buffers.
func (b buffers) flatOut(s source, goroutines int, d time.Duration) Sample {
	var (
		stop  atomic.Bool
		wg    sync.WaitGroup
		begin = make(chan struct{})
		given = make([][]span, goroutines)
		ahead = make([]int64, goroutines)
		pause = make([]int64, goroutines)
	)
	for i := range goroutines {
		room := len(b) / goroutines
		mine := b[i*room : (i+1)*room]
		wg.Go(func() {
			<-begin
			n, last := 0, time.Now().UnixMilli()
			for n < len(mine) && !stop.Load() {
				first, count := s.draw()
				mine[n] = span{first, int64(count)}
				if n++; n%lookEvery == 0 {
					now := time.Now().UnixMilli()
					ahead[i], pause[i] = max(ahead[i], s.madeAt(first)-now), max(pause[i], now-last)
					last = now
				}
			}
			stop.Store(true)
			given[i] = mine[:n]
		})
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	close(begin)
	for !stop.Load() && time.Since(start) < d {
		time.Sleep(min(10*time.Millisecond, d-time.Since(start)))
	}
	stop.Store(true)
	wg.Wait()
	out := Sample{Goroutines: goroutines, Seconds: time.Since(start).Seconds(), CPU: (cpuTime() - cpu).Seconds(), AheadMs: slices.Max(ahead), PauseMs: slices.Max(pause)}
	runtime.ReadMemStats(&after)
	out.Mallocs = int64(after.Mallocs - before.Mallocs)
	for _, g := range given {
		out.Calls += int64(len(g))
		for _, r := range g {
			out.IDs += r.n
		}
	}
	out.Twice, out.Backward = wrong(given)
	return out
}

// wrong counts the IDs that were given twice, and the calls whose first ID is below that of
// the goroutine's previous call. It sorts the spans in given.
func wrong(given [][]span) (twice, backward int64) {
	byFirst := func(a, b span) int { return cmp.Compare(a.first, b.first) }
	for _, g := range given {
		for i := 1; i < len(g); i++ {
			if g[i].first < g[i-1].first {
				backward++
			}
		}
		if !slices.IsSortedFunc(g, byFirst) {
			slices.SortFunc(g, byFirst)
		}
	}
	// Merge the spans of all goroutines in ascending order. All IDs seen are below next.
	at := make([]int, len(given))
	next := int64(math.MinInt64)
	for {
		least := -1
		for i, g := range given {
			if at[i] < len(g) && (least < 0 || g[at[i]].first < given[least][at[least]].first) {
				least = i
			}
		}
		if least < 0 {
			return twice, backward
		}
		r := given[least][at[least]]
		at[least]++
		if next > r.first {
			twice += min(next, r.first+r.n) - r.first
		}
		next = max(next, r.first+r.n)
	}
}

// paced makes one goroutine draw at a rate for the time d. It measures the duration of each
// call, and the age of each ID.
func paced(s source, rate int, d time.Duration) Sample {
	n := int(d.Seconds() * float64(rate))
	took, age := make([]float64, n), make([]float64, n)
	cpu, start := cpuTime(), time.Now()
	for i := range n {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		for time.Now().Before(due) {
		}
		asked := time.Now()
		id, _ := s.draw()
		done := time.Now()
		took[i] = float64(done.Sub(asked))
		age[i] = float64(done.UnixNano() - s.madeAt(id)*int64(time.Millisecond))
	}
	out := Sample{Goroutines: 1, Seconds: time.Since(start).Seconds(), CPU: (cpuTime() - cpu).Seconds(), IDs: int64(n), Calls: int64(n)}
	slices.Sort(took)
	slices.Sort(age)
	out.P50, out.P99, out.AgeP50, out.AgeP99 = took[n/2], took[n*99/100], age[n/2], age[n*99/100]
	return out
}

// burst measures the time for n IDs at once: the median of five bursts. In the pauses
// between them a buffer can be filled, and the clock catches up with borrowed time.
func burst(s source, n int) Sample {
	var took []float64
	for range 5 {
		start := time.Now()
		for got := 0; got < n; {
			_, count := s.draw()
			got += count
		}
		took = append(took, time.Since(start).Seconds())
		time.Sleep(50 * time.Millisecond)
	}
	median, _ := figures.Median(took)
	return Sample{Goroutines: 1, Seconds: median, IDs: int64(n), Calls: int64(n)}
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
