package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

// sequencesRead is what status prints about named sequences.
type sequencesRead struct {
	// Sequences is null if there are none, or if they could not be read.
	Sequences *view.Sequences `json:"sequences"`
	// SequencesError says why they could not be read. It is empty if they were.
	SequencesError string `json:"sequences_error"`
}

// sequencesTime is how long status reads sequences. A cluster may have 100,000.
const sequencesTime = 2 * time.Second

func readSequences(ctx context.Context, zk store.Store) sequencesRead {
	ctx, cancel := context.WithTimeout(ctx, sequencesTime)
	defer cancel()
	found, st, err := seq.Operator{Store: zk}.List(ctx, "")
	switch {
	case errors.Is(err, seq.ErrNoState):
		return sequencesRead{}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return sequencesRead{SequencesError: fmt.Sprintf("not read within %s", sequencesTime)}
	case err != nil:
		return sequencesRead{SequencesError: view.Clean(plain(err.Error()))}
	}
	return sequencesRead{Sequences: view.CountSequences(found, st)}
}

// lines returns the line about sequences, or nothing if there are none.
func (s sequencesRead) lines() []string {
	switch {
	case s.SequencesError != "":
		return []string{"named sequences: " + s.SequencesError + ". See `flaked seq list`"}
	case s.Sequences != nil:
		line := s.Sequences.Line()
		if len(s.Sequences.Problems()) > 0 {
			line += ". `flaked seq list` shows them"
		}
		return []string{line}
	}
	return nil
}
