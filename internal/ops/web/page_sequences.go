package web

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/view"
)

// seqView is a named sequence as the page shows it.
type seqView struct{ view.Sequence }

// shownSequences is the most rows of the table of sequences.
const shownSequences = 50

// sequencesOf returns the sequences that a process knows, in no order.
func sequencesOf(r seq.Report) (all []view.Sequence) {
	for _, u := range r.Sequences {
		all = append(all, view.InUse(u, r.State))
	}
	return view.Together(all)
}

// firstSequences returns at most most sequences, and how many more there are. Those with
// problems come first, then the most used ones.
func firstSequences(all []view.Sequence, most int) (shown []seqView, more int) {
	for _, s := range all {
		v := seqView{s}
		if at, _ := slices.BinarySearchFunc(shown, v, seqView.compare); at < most {
			shown = slices.Insert(shown, at, v)
			shown = shown[:min(len(shown), most)]
		}
	}
	return shown, len(all) - len(shown)
}

func (v seqView) compare(other seqView) int {
	return cmp.Or(cmp.Compare(v.rank(), other.rank()), cmp.Compare(other.part(), v.part()),
		cmp.Compare(v.Name, other.Name))
}

func (v seqView) rank() int {
	switch {
	case v.State == view.SeqFrozen:
		return 0
	case v.State == view.SeqExhausted:
		return 1
	case v.Waits() != "":
		return 2
	}
	return 3
}

func (v seqView) part() float64 { return view.Part(view.Taken(v.Record)) }

// Bad reports whether the sequence issues no values until an operator acts.
func (v seqView) Bad() bool { return v.rank() < 2 }

// Trouble reports whether an operator should look at the sequence.
func (v seqView) Trouble() bool {
	_, is := v.Problem()
	return is
}

// Waits returns why the node gets no values at present, although the state allows that. It is empty
// if the node gets some.
func (v seqView) Waits() string {
	switch v.Refusal {
	case record.Frozen, record.Exhausted:
		return ""
	}
	return string(v.Refusal)
}

// Holds returns the number of values that this node has taken and not issued. A strict sequence has none, but values
// that nobody got.
func (v seqView) Holds() string {
	held := view.Thousands(strconv.FormatInt(v.Held, 10))
	switch {
	case v.Record.Mode.Owned() && v.Passed > 0:
		return held + ", and got " + view.Thousands(strconv.FormatInt(v.Passed, 10)) + " from other nodes"
	case v.Record.Mode.Holds():
		return held
	case v.Unanswered == 0:
		return v.Record.Mode.String()
	}
	return v.Record.Mode.String() + ": " + view.Thousands(strconv.FormatInt(v.Unanswered, 10)) + " unanswered"
}

// Writer returns who owns the sequence, and how often that has changed. In other modes, it returns the node that wrote
// the record last.
func (v seqView) Writer() string {
	by := cmp.Or(v.Record.By, "–")
	switch {
	case !v.Record.Mode.Owned():
		return by
	case v.Sections > 0:
		by = "this node owns " + view.OfSections(v.Owned, v.Sections)
	case !v.Record.HasOwner():
		by = "no owner"
	default:
		by = "owner " + cmp.Or(v.Record.Address, by) + " since " + day(v.Record.OwnedAt) + " " + utc(v.Record.OwnedAt)
	}
	by += ", " + view.Plural(v.Record.Term, "owner") + " so far"
	if v.Lapses > 0 {
		by += ", " + view.Plural(v.Lapses, "lease") + " lost here"
	}
	return by
}

// Used returns the used part in percent.
func (v seqView) Used() string { return view.PartText(view.Taken(v.Record)) }

// Next returns the first value that no node has taken.
func (v seqView) Next() string {
	if v.Record.Next >= v.Record.Positions() || v.Record.Keyed() { // the page does not know the key
		return "–"
	}
	return view.Thousands(strconv.FormatInt(v.Record.Value(v.Record.Next), 10))
}

// Rate returns the values that this node issues in a second.
func (v seqView) Rate() string {
	if v.PerSecond == 0 {
		return "–"
	}
	return view.RateText(v.PerSecond)
}
