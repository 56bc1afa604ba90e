package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

func TestSequencesAreCounted(t *testing.T) {
	const now = 1_790_000_000_000
	one := func(next, at, incarnation int64) record.Record {
		return record.Record{
			Map:      sequence.Map{Start: 1, Increment: 1, Max: 1000},
			Settings: record.Settings{Block: 32, SupplyMs: 1, HoldMs: 1, Ceiling: 10, HardCeiling: 10},
			Next:     next, CreditAt: at, Credit: 100, PeakAt: at, Incarnation: incarnation,
		}
	}
	deleted, full, frozen := one(0, now, 2), one(0, now, 2), one(0, now, 1)
	deleted.DeletedAt = now
	full.MaxNames, full.Names = 5, 5
	frozen.MaxNames = 5
	found := []record.Named{
		{Name: "deleted", Record: deleted}, {Name: "full:*", Record: full}, {Name: "frozen:*", Record: frozen},
		{Name: "some", Record: one(799, now, 2)}, {Name: "many", Record: one(800, now, 2)},
		{Name: "all", Record: one(1000, now, 2)},
		{Name: "old", Record: one(100, now-1_000_000, 1)},
	}
	for n := range 5 {
		found = append(found, record.Named{Name: fmt.Sprint("more-", n), Record: one(900, now, 2)})
	}
	found = append(found, record.Named{Name: "broken", Err: record.ErrDamaged})
	in := func(found []record.Named) (all []SequenceReport) {
		for _, n := range found {
			all = append(all, RecordedReport(n, record.State{Incarnation: 2, Time: now}, now))
		}
		return all
	}
	const want = "Damaged records of sequences: broken (not a sequence record of flaked). " +
		"Frozen sequences, which issue no values: frozen:*, old. " +
		"Exhausted sequences, whose values are all taken: all, full:*. " +
		"Sequences used to 80 % or more: many (80.0%), more-0 (90.0%), more-1 (90.0%), more-2 (90.0%), more-3 " +
		"(90.0%) and 1 more. "
	got, text := CountSequences(in(found)), ""
	for _, p := range got.Problems(t0) {
		text += p.Text + ". "
	}
	if text != want || got.Count != 9 || got.Templates != 2 {
		t.Errorf("%d, %d: %s\nwant\n%s", got.Count, got.Templates, text, want)
	}
	if got := CountSequences(in(found[:1])); got != nil {
		t.Errorf("a tombstone counts: %+v", got)
	}
}

// Frozen sequences come before exhausted ones, then those that get no values now, then the most used ones, by name.
func TestUrgentSequencesComeFirst(t *testing.T) {
	var all []SequenceReport
	for _, u := range []mode.Use{
		{Name: "b", Record: section("", 5, 0).Record}, {Name: "a", Record: section("", 5, 0).Record},
		{Name: "near", Record: section("", 900, 0).Record},
		{Name: "no-owner", Record: section("", 5, 0).Record, Refusal: record.NoOwner},
		{Name: "ceiling", Record: section("", 6, 0).Record, Refusal: record.CeilingReached},
		{Name: "exhausted", Record: section("", 1000, 0).Record, Refusal: record.Exhausted},
		{Name: "frozen", Record: section("", 5, 0).Record, Refusal: record.Frozen},
	} {
		all = append(all, NodeReport(u, record.State{}))
	}
	slices.SortFunc(all, func(a, b SequenceReport) int { return CompareUrgency(&a, &b) })
	var got []string
	for _, r := range all {
		got = append(got, strings.TrimSuffix(r.Name+" "+r.Waits(), " "))
		if r.Stopped() != (r.Name == "frozen" || r.Name == "exhausted") {
			t.Errorf("%s: stopped %v", r.Name, r.Stopped())
		}
	}
	const want = "frozen, exhausted, ceiling ceiling, no-owner no-owner, near, a, b"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
