package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/words"
)

// sequencesTime bounds the time for which ReadSequences reads: a cluster may have 100,000 sequences.
const sequencesTime = 2 * time.Second

// ReadSequences adds to a draft the named sequences that ZooKeeper has recorded, or why they could not be read.
func (d *Draft) ReadSequences(ctx context.Context, st store.Store) {
	ctx, cancel := context.WithTimeout(ctx, sequencesTime)
	defer cancel()
	found, state, err := operator.Commands{Store: st}.List(ctx, "")
	switch {
	case errors.Is(err, operator.ErrNoState):
	case errors.Is(err, record.ErrDamaged): // the record that all need
		d.Sequences = CountSequences([]SequenceReport{{Name: "all", State: SeqDamaged, Why: words.Clean(err.Error())}})
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.SequencesError = fmt.Sprintf("not read within %s", sequencesTime)
	case err != nil:
		d.SequencesError = words.Clean(words.PlainError(err.Error()))
	default:
		var all []SequenceReport
		for _, n := range found {
			all = append(all, RecordedReport(n, state, d.Summary.NowMs))
		}
		d.Sequences = CountSequences(all)
	}
}
