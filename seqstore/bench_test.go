package seqstore

import (
	"testing"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// BenchmarkTake takes one value of a sequence that has many.
func BenchmarkTake(b *testing.B) {
	now := int64(1)
	i := New(Config{Mono: func() int64 { return now }})
	s := i.named("order")
	s.known = &Record{Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Settings: Settings{HoldMs: 1000}}
	s.accept(taking{record: *s.known, block: sequence.Block{First: 0, End: 1 << 50}}, now)
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
