package web

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// shownSequences is the most rows of the table of sequences.
const shownSequences = 50

// sequencesOf returns the sequences that a process knows, in no order.
func sequencesOf(r seq.Report) []health.SequenceReport {
	return health.NodeReports(r.Sequences, r.State)
}

// firstSequences returns up to limit sequences, the most urgent ones first, and how many more there are.
func firstSequences(all []health.SequenceReport, limit int) (shown []*health.SequenceReport, more int) {
	for k := range all {
		if at, _ := slices.BinarySearchFunc(shown, &all[k], health.CompareUrgency); at < limit {
			shown = slices.Insert(shown, at, &all[k])
			shown = shown[:min(len(shown), limit)]
		}
	}
	return shown, len(all) - len(shown)
}

// holds returns the number of values that this node has taken and not issued. A strict sequence has none, but values
// that nobody got.
func holds(d *health.SequenceReport) string {
	switch {
	case d.Passed > 0:
		return number(d.Held) + ", and got " + number(d.Passed) + " from other nodes"
	case d.Record.Mode.Holds():
		return number(d.Held)
	case d.Unanswered == 0:
		return d.Mode
	}
	return d.Mode + ": " + number(d.Unanswered) + " unanswered"
}

// writer returns who owns a sequence, and how often that has changed. In other modes, it returns the node that wrote
// the record last.
func writer(d *health.SequenceReport) string {
	by := cmp.Or(d.By, "–")
	switch {
	case !d.Record.Mode.Owned():
		return by
	case d.KnownSections > 0:
		by = "this node owns " + health.OfSections(d.OwnedSections, d.KnownSections)
	case d.Owner == "":
		by = "no owner"
	default:
		by = "owner " + d.Owner + " since " + day(d.OwnedSinceMs) + " " + utc(d.OwnedSinceMs)
	}
	by += ", " + words.Count(d.Term, "owner") + " so far"
	if d.Lapses > 0 {
		by += ", " + words.Count(d.Lapses, "lease") + " lost here"
	}
	return by
}

// next returns the first value that no node has taken. The page does not know the key of a sequence.
func next(d *health.SequenceReport) string {
	if d.Next == nil {
		return "–"
	}
	return number(*d.Next)
}

// number formats a whole number of any type with a sign.
func number(n any) string { return words.Grouped(reflect.ValueOf(n).Int()) }
