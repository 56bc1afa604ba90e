// Package generators compares flaked's generator, and the node of package flaked inside a
// program, with the generators of other Go libraries: `make bench-go`. It is a module of its
// own, so that programs that import flaked do not get those libraries.
package generators

import (
	"context"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// epoch is Twitter's epoch, in milliseconds since 1970.
const epoch = 1288834974657

// BenchmarkBound has layouts with 12 bits of sequence: no generator can make more than 4,096
// IDs in a millisecond, which is 244 ns for each.
func BenchmarkBound(b *testing.B) { benchmarkAll(b, 10, 12) }

// BenchmarkFree has layouts with 21 bits of sequence, which no generator here fills.
func BenchmarkFree(b *testing.B) { benchmarkAll(b, 1, 21) }

func benchmarkAll(b *testing.B, workerBits, sequenceBits uint8) {
	ctx := b.Context()
	layout := worker.Leaf()
	layout.WorkerBits, layout.SequenceBits = workerBits, sequenceBits

	b.Run("flaked.Generator", func(b *testing.B) {
		g, err := worker.NewGenerator(worker.GeneratorConfig{
			Layout: layout, Worker: 1, Clock: timeguard.NewIssuing(timeguard.System()),
			OnRollback: timeguard.RollbackPolicy{},
		})
		if err != nil {
			b.Fatal(err)
		}
		g.Extend(layout.MaxTick())
		benchmark(b, func() (int64, error) {
			id, err := g.Next(ctx)
			return int64(id), err
		})
	})
	// A node in memory has no ZooKeeper. Next does not ask ZooKeeper in any case.
	b.Run("flaked.Node", func(b *testing.B) {
		n, err := flaked.Open(ctx, flaked.Config{InMemory: true, Settings: flaked.Settings{Layout: layout.String()}})
		if err != nil {
			b.Fatal(err)
		}
		defer n.Close(context.WithoutCancel(ctx))
		benchmark(b, func() (int64, error) {
			id, err := n.Next(ctx)
			return int64(id), err
		})
	})
	b.Run("bwmarrin", func(b *testing.B) {
		// NewNode copies these package variables.
		bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits = epoch, workerBits, sequenceBits
		n, err := bwmarrin.NewNode(1)
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, func() (int64, error) { return n.Generate().Int64(), nil })
	})
	b.Run("sonyflake", func(b *testing.B) {
		sf, err := sonyflake.New(sonyflake.Settings{
			BitsSequence: int(sequenceBits), BitsMachineID: int(workerBits), TimeUnit: time.Millisecond,
			StartTime: time.UnixMilli(epoch),
			MachineID: func() (int, error) { return 1, nil },
		})
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, sf.NextID)
	})
}

// benchmark measures next in one goroutine, and in as many as there are processors.
func benchmark(b *testing.B, next func() (int64, error)) {
	b.Run("one", func(b *testing.B) {
		for last := int64(-1); b.Loop(); {
			id, err := next()
			if err != nil || id <= last {
				b.Fatalf("%d after %d: %v", id, last, err)
			}
			last = id
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := next(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
