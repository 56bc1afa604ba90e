package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/seqimport"
	"github.com/flaked/flaked/seqstore"
)

// verify compares the counters with the sequences that were imported. It raises and starts them if that was
// asked for. late is for after the output.
func (im *importer) verify(ctx context.Context) (late, err error) {
	bad, first := 0, ""
	for _, n := range im.counters {
		r, err := im.find(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		outcome := judgeImported(n, r, im.from)
		if outcome == rowBehind && r.Held && im.c.Bool("raise") {
			if r, err = im.raise(ctx, n, r); err != nil {
				return nil, fmt.Errorf("%s: %w", n.Name, err)
			}
			outcome = rowRaised
		}
		if failed := outcome == rowBehind || outcome == rowDiffers || outcome == rowMissing; failed {
			if bad++; bad == 1 {
				first = verifyAdvice(n, r, outcome)
			}
		}
		im.add(n, r, outcome)
	}
	if bad > 0 {
		im.report.Text = im.counts() + "."
		return exitWith(exitFailure, "%s cannot be verified. No sequence was started. %s", count(int64(bad), "row"), first), nil
	}
	if im.c.Bool("start") {
		if err := im.start(ctx); err != nil {
			return nil, err
		}
	}
	im.report.Text = im.counts() + "."
	switch {
	case im.dry:
		im.report.Text += " Nothing was changed."
	case im.report.Changed && !im.c.IsSet("wait"):
		im.report.Text += " Connected nodes follow within a heartbeat, 3s by default."
	}
	return nil, nil
}

// judgeImported compares a counter with its sequence, nil if there is none.
func judgeImported(n seqimport.Counter, r *seqstore.Record, from string) string {
	switch {
	case r == nil, r.Source != from:
		return rowMissing
	case r.Increment != n.Increment, (n.First-r.Start)%r.Increment != 0:
		return rowDiffers
	case r.Next < r.PositionAtOrAbove(n.First):
		return rowBehind
	case !r.Held:
		return rowRunning
	}
	return rowVerified
}

// verifyAdvice says what to do about a row that cannot be verified.
func verifyAdvice(n seqimport.Counter, r *seqstore.Record, outcome string) string {
	switch outcome {
	case rowMissing:
		return fmt.Sprintf("Line %d: there is no sequence %s that was imported from this source. Import it first", n.Line, n.Name)
	case rowDiffers:
		return fmt.Sprintf("Line %d: the increment or the offset of %s has changed since the import. Delete the sequence, and import it again under another name", n.Line, n.Name)
	}
	text := fmt.Sprintf("Line %d: the source has issued %d numbers of %s from the next value on", n.Line, r.PositionAtOrAbove(n.First)-r.Next, n.Name)
	if !r.Held {
		return text + ", although the sequence is started: numbers may have been issued twice. Stop the source, and raise the next value with `flaked seq set --next`"
	}
	return text + ". Make sure that nothing issues its numbers any more, and run this with --raise and new rows"
}

// raise raises the next value of a sequence to the counter's, with the margin.
func (im *importer) raise(ctx context.Context, n seqimport.Counter, old *seqstore.Record) (*seqstore.Record, error) {
	next, err := im.margin.After(n)
	if err != nil {
		return nil, err
	}
	if next > old.Max {
		return nil, fmt.Errorf("the next value would be %d, above the max %d. Raise the max: flaked seq set %s --max VALUE", next, old.Max, n.Name)
	}
	r, err := im.operator(n.Name).Set(ctx, n.Name, seqstore.Change{Next: &next})
	if err != nil {
		return nil, err
	}
	im.wrote(n.Name, r)
	return &r, nil
}

// start starts the sequences that are held. All rows are verified.
func (im *importer) start(ctx context.Context) error {
	for k, n := range im.counters {
		if im.report.Rows[k].Outcome == rowRunning {
			continue
		}
		if im.dry && im.report.Rows[k].Outcome == rowRaised { // the store has the old next value
			continue
		}
		r, err := im.o.Start(ctx, n.Name, n.First)
		switch {
		case errors.Is(err, seqstore.ErrNotHeld):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w. Before that: %d of %d rows. Run the command again to go on", n.Name, err, k, len(im.counters))
		}
		im.wrote(n.Name, r)
		im.report.Rows[k].Outcome = rowStarted
	}
	return nil
}
