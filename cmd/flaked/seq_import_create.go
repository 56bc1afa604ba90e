package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/seqimport"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

// create creates a held sequence for each counter that has none. late is for after the output.
func (im *importer) create(ctx context.Context) (late, err error) {
	hold, err := im.hold(ctx)
	if err != nil {
		return nil, err
	}
	im.definition.HoldMs = hold
	wanted, err := im.definitions()
	if err != nil {
		return nil, err
	}
	var others []string
	for k, n := range im.counters {
		r, err := im.find(ctx, n.Name)
		if err == nil && r == nil {
			var created seqstore.Record
			if created, err = im.operator(n.Name).Create(ctx, wanted[k]); err == nil {
				im.wrote(n.Name, created)
				im.add(n, &created, rowCreated)
				continue
			}
		}
		switch {
		case errors.Is(err, seqstore.ErrExists):
			return nil, fmt.Errorf("%s: somebody else has created it just now. %s. Run the command again", n.Name, im.counts())
		case err != nil:
			return nil, fmt.Errorf("%w. Before that: %d sequences created. Run the command again to go on", err, len(im.report.Rows))
		case r.Source != im.from:
			others = append(others, n.Name)
			im.add(n, r, rowExists)
		case r.Held:
			im.add(n, r, rowImported)
		default:
			im.add(n, r, rowRunning)
		}
	}
	im.report.Text = im.counts() + ". " + im.afterwards()
	if len(others) > 0 {
		return exitWith(exitDegraded, "these sequences exist, and no import from %s created them, so they are not changed: %s. Import the rows under other names, with --prefix or --rename", im.from, listed(others)), nil
	}
	return nil, nil
}

func (im *importer) afterwards() string {
	if im.dry {
		return "Nothing was changed."
	}
	if !slices.ContainsFunc(im.report.Rows, func(r importRow) bool { return r.Outcome == rowCreated || r.Outcome == rowImported }) {
		return "Nothing was created."
	}
	return "The new sequences are held. Stop all that issues these numbers, read the rows again, and run this with --verify --start."
}

// definitions returns the sequence of each counter, or an error that names all lines of which none can be made.
func (im *importer) definitions() (all []seqstore.Definition, err error) {
	var bad seqimport.BadRows
	for _, n := range im.counters {
		d := im.definition
		d.Name, d.StartGiven, d.Held, d.Source = n.Name, true, true, im.from
		d.Map = sequence.Map{Start: n.Start(), Increment: n.Increment, Max: d.Max}
		d.First, err = im.margin.After(n)
		switch {
		case err != nil:
		case d.First > d.Max:
			err = fmt.Errorf("the next value would be %d, above the max %d. Give a higher --max, or a smaller --margin", d.First, d.Max)
		default:
			err = d.Check()
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %s: %v", n.Line, n.Name, err))
		}
		all = append(all, d)
	}
	if len(bad) > 0 {
		return nil, exitWith(exitFailure, "rows cannot be imported, and nothing was changed: %w", bad)
	}
	return all, nil
}
