package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// NodeReports returns the reports of what a node knows of its sequences, in no order. The sections of a family are one.
func NodeReports(all []mode.Use, st record.State) []SequenceReport {
	out, families := make([]SequenceReport, 0, len(all)), map[string][]SequenceReport{}
	for _, u := range all {
		if d := NodeReport(u, st); d.Section != nil {
			families[d.Family] = append(families[d.Family], d)
		} else {
			out = append(out, d)
		}
	}
	for name, sections := range families {
		out = append(out, nodeFamily(name, sections, st))
	}
	return out
}

// nodeFamily returns the report of what a node knows of a family.
func nodeFamily(name string, sections []SequenceReport, st record.State) SequenceReport {
	state, why, count := together(sections)
	r, at := sections[0].Record, *sections[0].AtNode
	for _, s := range sections[1:] {
		at.Held, at.PerSecond = at.Held+s.Held, at.PerSecond+s.PerSecond
		at.Passed, at.Lapses = at.Passed+s.Passed, at.Lapses+s.Lapses
		at.OwnedSections += s.OwnedSections
		at.Refusal = cmp.Or(at.Refusal, s.Refusal)
		r.OwnedAt, r.Term, r.Next = max(r.OwnedAt, s.Record.OwnedAt), r.Term+s.Term, max(r.Next, s.Taken)
	}
	r.Owner, r.Address, r.Sections = "", "", count // each section has its own owner
	d := report(name, r, st)
	d.State, d.Why, d.KnownSections, d.Term, d.AtNode = state, why, count, r.Term, &at
	return d
}

// stateRanks orders the states of sections: the first of them is that of the family.
var stateRanks = []string{SeqDamaged, SeqFrozen, SeqExhausted, SeqAfterLoss, SeqInUse}

// together sorts sections, the worst first. It returns the state of their family, which is that of the worst one, and
// their number.
func together(sections []SequenceReport) (state, why string, count int) {
	slices.SortFunc(sections, func(a, b SequenceReport) int {
		return cmp.Or(slices.Index(stateRanks, a.State)-slices.Index(stateRanks, b.State), cmp.Compare(b.Taken, a.Taken))
	})
	same := 0
	for _, s := range sections {
		same += oneIf(s.State == sections[0].State)
	}
	switch state, why, count = sections[0].State, sections[0].Why, len(sections); {
	case state == SeqInUse:
		state = SeqFamily
	case why == "":
		why = OfSections(same, count)
	}
	return state, why, count
}

// oneIf returns 1 for true and 0 for false.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// OfSections says how many of all sections something is true for.
func OfSections(some, all int) string {
	return fmt.Sprintf("%d of %s", some, Plural(int64(all), "section"))
}

// OwnerGone reports whether an ordered sequence has an owner that has not renewed its lease, so that another node may
// take its place. now is Unix ms.
func OwnerGone(n record.Named, now int64) bool {
	return n.HasOwner() && now-n.Written > 2*n.HoldMs
}
