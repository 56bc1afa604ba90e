package seq

import (
	"fmt"
	"testing"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// BenchmarkTake takes one value of a sequence that has many.
func BenchmarkTake(b *testing.B) { benchmarkTake(b, plain()) }

func BenchmarkTakeSalted(b *testing.B)    { benchmarkTake(b, salted()) }
func BenchmarkTakeScattered(b *testing.B) { benchmarkTake(b, scattered()) }

func benchmarkTake(b *testing.B, m sequence.Map) {
	b.ReportAllocs()
	_, i := New(Config{Elapsed: timeguard.NewElapsed(timeguard.System())})
	now := i.issuer.now()
	s := i.issuer.series.findOrAdd("order")
	s.setRecord(record.Record{Map: m, Settings: record.Settings{HoldMs: 1e9}})
	s.segment().accept(mode.Write{Write: record.Write{Record: *s.Known, Block: positions.Block{First: 0, End: 1 << 40}}}, now)
	s.mapKey = &mapKey{key: sequence.NewKey()}
	s.Values = s.mapKey.valuesOf(*s.Known)
	i.issuer.progress.Store(&progress{knewAllAt: now})
	name := []byte("order")
	var runs []worker.Run
	var w sequence.Wait
	for b.Loop() {
		var err error
		if runs, err = i.issuer.Take(&w, name, 1, false, nil, runs[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// What a write of the journal costs a node that issues from a thousand sequences, without the disk.
func BenchmarkJournalOfAThousandSequences(b *testing.B) {
	_, i := New(Config{Store: nil, Elapsed: elapsedOf(new(int64))})
	i.issuer.journal = newJournal(&memDir{Fails: func(data []byte) error {
		b.ReportMetric(float64(len(data)), "bytes")
		return nil
	}})
	i.issuer.journal.node = "node"
	var all []*segment
	for k := range 1000 {
		s := i.issuer.series.findOrAdd(fmt.Sprint("sequence-", k))
		s.setRecord(record.Record{ID: "0123456789abcdef", Map: sequence.Map{Start: 1, Increment: 1, Max: 1 << 50}})
		m := s.stocked()
		m.lastBlock = positions.Block{First: 0, End: 1 << 40}
		m.stock.Add(m.lastBlock)
		all = append(all, m)
	}
	for b.Loop() {
		for _, m := range all {
			m.stock.SkipTo(m.stock.After(m.stock.Free()))
		}
		i.issuer.saveJournal()
	}
}
