package worker_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// wide has so many sequence bits that no benchmark reaches its ceiling.
func wide() worker.Layout {
	l := worker.Leaf()
	l.WorkerBits, l.SequenceBits = 2, 20
	return l
}

// benchGenerator returns a generator as a node has it, with the issuing clock and Leaf's
// rule.
func benchGenerator(b *testing.B, l worker.Layout) *worker.Generator {
	b.Helper()
	g, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: l, Worker: 1, Clock: timeguard.NewIssuing(timeguard.System()), OnRollback: timeguard.RollbackPolicy{},
	})
	if err != nil {
		b.Fatal(err)
	}
	g.Extend(l.MaxTick())
	return g
}

func BenchmarkNext(b *testing.B) {
	g, ctx := benchGenerator(b, wide()), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextParallel(b *testing.B) {
	g, ctx := benchGenerator(b, wide()), context.Background()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkReserve64 measures the cost of a pipelined read. ns/op is for one ID.
func BenchmarkReserve64(b *testing.B) {
	g, ctx := benchGenerator(b, wide()), context.Background()
	for n := 0; n < b.N; {
		run, err := g.Reserve(ctx, 64)
		if err != nil {
			b.Fatal(err)
		}
		n += run.Len
	}
}

// BenchmarkCeiling runs at the ceiling of the default layout. It reports the share of 4,096 IDs a millisecond that it
// reaches, and the CPU time for one ID.
func BenchmarkCeiling(b *testing.B) {
	g, ctx := benchGenerator(b, worker.Leaf()), context.Background()
	cpu, start := cpuTime(b), time.Now()
	for range b.N {
		if _, err := g.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
	wall := time.Since(start)
	b.ReportMetric(100*float64(b.N)/(4096*float64(wall)/float64(time.Millisecond)), "%ceiling")
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/ID")
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
