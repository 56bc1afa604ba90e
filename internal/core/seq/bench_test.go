package seq

import (
	"testing"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// BenchmarkTake takes one value of a sequence that has many.
func BenchmarkTake(b *testing.B) { benchmarkTake(b, plain()) }

func BenchmarkTakeSalted(b *testing.B)    { benchmarkTake(b, salted()) }
func BenchmarkTakeScattered(b *testing.B) { benchmarkTake(b, scattered()) }

func benchmarkTake(b *testing.B, m sequence.Map) {
	b.ReportAllocs()
	now := int64(1)
	i := New(Config{Mono: func() int64 { return now }})
	s := i.named("order")
	s.know(Record{Map: m, Settings: Settings{HoldMs: 1000}})
	s.segment().accept(blockWrite{record: *s.known, block: sequence.Block{First: 0, End: 1 << 40}}, now)
	s.secret = &secret{key: sequence.NewKey()}
	s.values = s.known.values(s.secret)
	i.read.Store(now)
	name := []byte("order")
	var runs []worker.Run
	var w sequence.Wait
	for b.Loop() {
		var err error
		if runs, err = i.Take(&w, name, 1, false, nil, runs[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
