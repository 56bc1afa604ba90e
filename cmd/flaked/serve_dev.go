package main

import (
	"context"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/seq/strict"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// devSequences are the named sequences of a development node, to which `flaked seq create` cannot reach. The first
// request for a name creates the sequence: a strict one if the request has a key, else a segment one.
type devSequences struct {
	*seq.Issuer
	store store.Store // in memory
}

// Take creates a sequence that the node does not know, and takes values as the Issuer does.
func (d devSequences) Take(
	w *sequence.Wait, name []byte, n int, whole bool, wake func(), to []worker.Run,
) ([]worker.Run, error) {
	if _, known := d.Use(string(name)); !known {
		d.create(string(name), w.Key != "")
	}
	return d.Issuer.Take(w, name, n, whole, wake, to)
}

// create creates a sequence. It does nothing if that fails: the Issuer says what is wrong.
func (d devSequences) create(name string, keyed bool) {
	wanted := operator.Definition{
		Name: name, Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript},
		Settings: record.Settings{
			Block: positions.MinBlock, SupplyMs: defaultSupply.Milliseconds(), HoldMs: defaultSupply.Milliseconds(),
			Ceiling: defaultCeiling, HardCeiling: defaultCeiling,
		},
	}
	if keyed {
		wanted.Mode, wanted.HoldMs = record.Strict, strict.AnswerFor.Milliseconds()
	}
	_, _ = operator.Commands{Store: d.store}.Create(context.Background(), wanted)
}
