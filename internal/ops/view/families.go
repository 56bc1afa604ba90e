package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// Together returns sequences with the sections of each family as one.
func Together(all []Sequence) (out []Sequence) {
	families := map[string][]Sequence{}
	for _, s := range all {
		if family, _, is := record.SectionOf(s.Name); is {
			families[family] = append(families[family], s)
		} else {
			out = append(out, s)
		}
	}
	for name, sections := range families {
		f := asFamily(sections)
		f.Name, f.Record.Sections = name, len(sections)
		out = append(out, f)
	}
	return out
}

// stateRanks orders the states of sections: the first of them is that of the family.
var stateRanks = []string{SeqDamaged, SeqFrozen, SeqExhausted, SeqAfterLoss, SeqInUse}

// asFamily returns what sections are together. Its state and its refusal are those of the worst one.
func asFamily(sections []Sequence) Sequence {
	slices.SortFunc(sections, func(a, b Sequence) int {
		return cmp.Or(slices.Index(stateRanks, a.State)-slices.Index(stateRanks, b.State),
			cmp.Compare(b.Record.Next, a.Record.Next))
	})
	f, same := sections[0], 1
	f.Sections, f.Owned = len(sections), truth(f.Owns)
	f.Owns, f.Record.Owner, f.Record.Address = false, "", "" // each section has its own owner
	for _, s := range sections[1:] {
		f.Held, f.PerSecond = f.Held+s.Held, f.PerSecond+s.PerSecond
		f.Passed, f.Lapses = f.Passed+s.Passed, f.Lapses+s.Lapses
		f.Record.OwnedAt = max(f.Record.OwnedAt, s.Record.OwnedAt)
		f.Record.Term, f.Record.Next = f.Record.Term+s.Record.Term, max(f.Record.Next, s.Record.Next)
		f.Refusal = cmp.Or(f.Refusal, s.Refusal)
		f.Gone += s.Gone
		f.Owned += truth(s.Owns)
		if s.State == f.State {
			same++
		}
	}
	switch {
	case f.State == SeqInUse:
		f.State = SeqFamily
	case f.Why == "":
		f.Why = OfSections(same, f.Sections)
	}
	return f
}

func truth(is bool) int {
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
