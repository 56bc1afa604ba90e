package health

import (
	"cmp"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// NodeReports returns the reports of what a node knows of its sequences, in no order. All sections of a family have one
// report.
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
	sortWorstFirst(sections)
	r, at := sections[0].Record, *sections[0].AtNode
	for _, s := range sections[1:] {
		at.Held, at.PerSecond = at.Held+s.Held, at.PerSecond+s.PerSecond
		at.Passed, at.Lapses = at.Passed+s.Passed, at.Lapses+s.Lapses
		at.OwnedSections += s.OwnedSections
		at.Refusal = cmp.Or(at.Refusal, s.Refusal)
		r.OwnedAt, r.Term, r.Next = max(r.OwnedAt, s.Record.OwnedAt), r.Term+s.Term, max(r.Next, s.Taken)
	}
	r.Owner, r.Address, r.SectionCount = "", "", len(sections) // each section has its own owner
	d := baseReport(name, r, st)
	d.State, d.Why = familyState(sections)
	d.KnownSections, d.Term, d.AtNode = len(sections), r.Term, &at
	return d
}

// sortWorstFirst sorts sections, the worst first.
func sortWorstFirst(sections []SequenceReport) {
	slices.SortFunc(sections, func(a, b SequenceReport) int {
		return cmp.Or(slices.Index(stateRanks, a.State)-slices.Index(stateRanks, b.State), cmp.Compare(b.Taken, a.Taken))
	})
}

// familyState returns the state of the family of these sections. The worst section comes first.
func familyState(sections []SequenceReport) (state SequenceState, why string) {
	worst, same := sections[0], 0
	for _, s := range sections {
		same += oneIf(s.State == worst.State)
	}
	switch {
	case worst.State == SeqInUse:
		return SeqFamily, worst.Why
	case worst.Why == "":
		return worst.State, OfSections(same, len(sections))
	}
	return worst.State, worst.Why
}
