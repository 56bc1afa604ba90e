package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/clusterview"
	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/internal/zkstore"
)

// sequencesRead is what status prints about named sequences.
type sequencesRead struct {
	// Sequences is null if there are none, or if they could not be read.
	Sequences *clusterview.Sequences `json:"sequences"`
	// SequencesError says why they could not be read. It is empty if they were.
	SequencesError string `json:"sequences_error"`
}

// sequencesTime is how long status reads sequences. A cluster may have 100,000.
const sequencesTime = 2 * time.Second

func readSequences(ctx context.Context, store zkstore.Store) sequencesRead {
	ctx, cancel := context.WithTimeout(ctx, sequencesTime)
	defer cancel()
	found, st, err := seqstore.Operator{Store: store}.List(ctx, "")
	switch {
	case errors.Is(err, seqstore.ErrNoState):
		return sequencesRead{}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return sequencesRead{SequencesError: fmt.Sprintf("not read within %s", sequencesTime)}
	case err != nil:
		return sequencesRead{SequencesError: clusterview.Clean(plain(err.Error()))}
	}
	return sequencesRead{Sequences: clusterview.CountSequences(found, st)}
}

// lines returns the line about sequences, or nothing if there are none.
func (s sequencesRead) lines() []string {
	switch {
	case s.SequencesError != "":
		return []string{"named sequences: " + s.SequencesError + ". See `flaked seq list`"}
	case s.Sequences != nil:
		return []string{s.Sequences.Line()}
	}
	return nil
}
