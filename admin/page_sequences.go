package admin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
)

// seqView is a named sequence as the page shows it.
type seqView struct {
	seq.Use
	State string
}

// shownSequences is the most rows of the table of sequences.
const shownSequences = 50

// sequences returns the sequences that this process knows, in no order.
func (s *Server) sequences() []seqView { return seqViews(s.cfg.Sequences()) }

func seqViews(r seq.Report) []seqView {
	views := make([]seqView, 0, len(r.Sequences))
	for _, u := range r.Sequences {
		state := view.SequenceState(u.Record, r.State)
		if u.Refusal == seq.Frozen { // by a damaged record, too
			state = view.SeqFrozen
		}
		views = append(views, seqView{u, state})
	}
	return views
}

// countSequences returns nil if there are no sequences.
func countSequences(views []seqView) *view.Sequences {
	if len(views) == 0 {
		return nil
	}
	s := view.NewSequences()
	var named []seqView // in the document
	for _, v := range views {
		if v.Bad() || v.Near() {
			named = append(named, v)
		} else {
			s.Add(v.Name, v.Record, v.State)
		}
	}
	slices.SortFunc(named, func(a, b seqView) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range named {
		s.Add(v.Name, v.Record, v.State)
	}
	return s
}

// firstSequences returns at most most sequences, and how many more there are. Those with
// problems come first, then the most used ones.
func firstSequences(views []seqView, most int) (shown []seqView, more int) {
	for _, v := range views {
		if at, _ := slices.BinarySearchFunc(shown, v, seqView.compare); at < most {
			shown = slices.Insert(shown, at, v)
			shown = shown[:min(len(shown), most)]
		}
	}
	return shown, len(views) - len(shown)
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

// Near reports whether most values are used.
func (v seqView) Near() bool { return v.part() >= view.NearlyUsed }

// Trouble reports whether an operator should look at the sequence.
func (v seqView) Trouble() bool { return v.rank() < 3 || v.Near() }

// Waits returns why the node gets no values at present, although the state allows that. It is empty
// if the node gets some.
func (v seqView) Waits() string {
	switch v.Refusal {
	case seq.Frozen, seq.Exhausted:
		return ""
	}
	return string(v.Refusal)
}

// Holds returns the number of values that this node has taken and not issued. A strict sequence has none, but values
// that nobody got.
func (v seqView) Holds() string {
	switch {
	case v.Record.Mode.Holds():
		return view.Thousands(strconv.FormatInt(v.Held, 10))
	case v.Unanswered == 0:
		return v.Record.Mode.String()
	}
	return v.Record.Mode.String() + ": " + view.Thousands(strconv.FormatInt(v.Unanswered, 10)) + " unanswered"
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
	switch r := v.PerSecond; {
	case r == 0:
		return "–"
	case r < 0.1:
		return "<0.1/s"
	case r < 10:
		return fmt.Sprintf("%.1f/s", r)
	}
	return view.Thousands(strconv.FormatInt(int64(math.Round(v.PerSecond)), 10)) + "/s"
}

// Lasts returns when the values are used up at the rate of this node.
func (v seqView) Lasts() string {
	const year = 365 * 24 * 3600
	left := v.Record.Positions() - min(v.Record.Next, v.Record.Positions()) + v.Held
	if v.PerSecond == 0 || left == 0 {
		return "–"
	}
	switch seconds := float64(left) / v.PerSecond; {
	case seconds > 100*year:
		return "> 100 years"
	case seconds > 2*year:
		return fmt.Sprintf("%.0f years", seconds/year)
	default:
		return view.Brief(int64(seconds * 1000))
	}
}
