package web

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// shownSequences is the most rows of the table of sequences.
const shownSequences = 50

// sequencesOf returns the sequences that a process knows, in no order.
func sequencesOf(r seq.Report) []health.SequenceReport {
	return health.NodeReports(r.Sequences, r.State)
}

// firstSequences returns at most most sequences, and how many more there are. Those with
// problems come first, then the most used ones.
func firstSequences(all []health.SequenceReport, most int) (shown []*health.SequenceReport, more int) {
	for k := range all {
		if at, _ := slices.BinarySearchFunc(shown, &all[k], byWorth); at < most {
			shown = slices.Insert(shown, at, &all[k])
			shown = shown[:min(len(shown), most)]
		}
	}
	return shown, len(all) - len(shown)
}

func byWorth(a, b *health.SequenceReport) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Used(), a.Used()), cmp.Compare(a.Name, b.Name))
}

func rank(d *health.SequenceReport) int {
	switch {
	case d.State == health.SeqFrozen:
		return 0
	case d.State == health.SeqExhausted:
		return 1
	case waits(d) != "":
		return 2
	}
	return 3
}

// bad reports whether a sequence issues no values until an operator acts.
func bad(d *health.SequenceReport) bool { return rank(d) < 2 }

// trouble reports whether an operator should look at a sequence.
func trouble(d *health.SequenceReport) bool {
	return d.HasProblem()
}

// waits returns why the node gets no values at present, although the state allows that. It is empty
// if the node gets some.
func waits(d *health.SequenceReport) string {
	switch d.Refusal {
	case record.Frozen, record.Exhausted:
		return ""
	}
	return string(d.Refusal)
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
