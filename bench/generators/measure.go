//go:build linux

package main

import (
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
	AheadMs  int64 // how far ahead of the clock IDs were stamped
	PauseMs  int64 // the longest that a goroutine had to wait
	Twice    int64 // IDs that had been given away before
	Backward int64 // IDs below the one that the same goroutine got before
	// Of a paced load, in nanoseconds.
	P50, P99, AgeP50, AgeP99 float64
}

// span is what one call gave away.
type span struct{ first, n int64 }

// buffers hold what was given away. They are made, and touched, once: a page
// fault in the middle of a measurement would be counted as the library's.
type buffers []span

// spans are as many as the fastest gives away in a measurement.
const spans = 24 << 20

func newBuffers() buffers {
	b := make(buffers, spans)
	for i := range b {
		b[i].n = 1
	}
	return b
}

// lookEvery is how many calls of a goroutine go without a look at the clock:
// its price is not to be that of the calls.
const lookEvery = 256

// flatOut has goroutines draw as fast as they can, until the time is up or one
// of them has no room left.
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

// wrong counts the IDs that were given away twice, and those below the one
// that their goroutine had before. It sorts what it is given.
func wrong(given [][]span) (twice, backward int64) {
	byFirst := func(a, b span) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return 0
	}
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
	// A merge of all goroutines' IDs: below next all that there were have been seen.
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

// paced has one goroutine draw at a rate, and times each call: how long it
// took, and how old the ID was.
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

// burst is how long n IDs at once take: the median of five times, with rests in
// which a buffer is filled, and the clock catches up with what was borrowed.
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
