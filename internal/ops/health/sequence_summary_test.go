package health

import (
	"fmt"
	"math"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

func TestPartText(t *testing.T) {
	for _, row := range []struct {
		done, all int64
		want      string
	}{
		{0, 100, "0%"},
		{1, 1_000_000, "<0.1%"},
		{1, 8, "12.5%"},
		{999_999, 1_000_000, ">99.9%"},
		{math.MaxInt64 - 1, math.MaxInt64, ">99.9%"}, // rounds to 1
		{100, 100, "100%"},
	} {
		if got := partText(row.done, row.all); got != row.want {
			t.Errorf("%d of %d: %s, want %s", row.done, row.all, got, row.want)
		}
	}
}

func TestUsedUpText(t *testing.T) {
	const now, day = 1_795_975_200_000, 24 * 3600 // 2026-11-29 18:00 UTC
	for _, row := range []struct {
		left      int64
		perSecond float64
		want      string
	}{
		{0, 1, ""},
		{5, 0, ""},
		{119, 1, "in less than 2 minutes"},
		{120, 1, "in about 2 minutes, 18:02 UTC"},
		{7100, 1, "in about 118 minutes, 19:58 UTC"},
		{30 * 3600 * 50, 50, "in about 30 hours, 2026-12-01 00:00 UTC"},
		{12 * day * 50, 50, "in about 12 days, 2026-12-11"},
		{400 * day, 1, "in about 400 days, 2028-01-03"},
		{12 * 365 * day, 1, "in about 12 years, 2038"},
		{99 * 365 * day, 1, "in about 99 years, 2125"},
		{100 * 365 * day, 1, "in more than 100 years"},
		{math.MaxInt64, 0.001, "in more than 100 years"},
	} {
		if got := (WrongSequence{Positions: row.left, PerSecond: row.perSecond}).usedUp(now); got != row.want {
			t.Errorf("%d at %v/s: %s, want %s", row.left, row.perSecond, got, row.want)
		}
	}
}

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

// Nodes say how fast sequences are used up, and which they cannot serve. A problem that records show, too, is named
// once.
func TestNodesSayWhatRecordsOfSequencesDoNot(t *testing.T) {
	use := func(name string, next int64, perSecond float64, refusal record.Reason) SequenceReport {
		r := record.Record{Map: sequence.Map{Start: 1, Increment: 1, Max: 1000}, Next: next, Credit: 100,
			Settings: record.Settings{Block: 32, SupplyMs: 1, HoldMs: 1, Ceiling: 10, HardCeiling: 10}}
		return NodeReport(mode.Use{Name: name, Record: r, PerSecond: perSecond, Refusal: refusal}, record.State{})
	}
	says := func(ready bool, all ...SequenceReport) *Answer {
		return &Answer{Ready: ready, Sequences: CountSequences(all)}
	}
	r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0), liveEntry(2, 0)},
		local(t0))
	r.Sequences = CountSequences([]SequenceReport{use("near", 900, 0, ""), use("order", 5, 0, ""), use("all", 1000, 0, "")})
	holds := use("all", 1000, 2, record.Exhausted)
	holds.Held = 1200
	r.Workers[0].Says = says(true, holds, use("near", 900, 0.5, ""), use("order", 5, 9, record.NoBlock))
	r.Workers[1].Says = says(true, use("near", 900, 1.5, ""), use("order", 5, 9, record.Confirming),
		use("busy", 5, 9, record.CeilingReached), use("lost", 5, 9, record.Frozen), use("deleted", 1000, 9, record.Exhausted))
	r.Workers[2].Says = says(false, use("order", 5, 0, record.NoBlock))
	r.Workers[2].Says.Cause = "confirming"
	r.Complete()
	const want = "Frozen sequences, which issue no values: lost (its record or key is damaged or missing at worker 1 " +
		"(api)). Exhausted sequences, whose values are all taken: all (nodes hold 1,200, used up in about " +
		"10 minutes, 17:56 UTC, at 2.0/s). " +
		"Sequences of which a ready node gets no values: order (no-block at worker 0 (api), confirming at " +
		"worker 1 (api)). " +
		"Sequences at their ceiling: busy (at worker 1 (api)). " +
		"Sequences used to 80 % or more: near (90.0%, used up in less than 2 minutes, at 2.0/s). "
	text := ""
	for _, p := range r.Summary.Problems {
		text += p.Text + ". "
	}
	if text != want || !r.Summary.Degraded {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	const verdict = "5 problems: 2 of 3 nodes serve, 1 starting, 3 sequences"
	if got := r.Verdict(); got != verdict {
		t.Error(got)
	}
}

// Several nodes say together more of one problem than a report lists.
func TestSequencesThatNodesReportAreSortedAndBounded(t *testing.T) {
	says := func(from, to int) *Answer {
		var all []SequenceReport
		for n := from; n < to; n++ {
			all = append(all, SequenceReport{Name: fmt.Sprintf("order-%02d", n), State: SeqFrozen})
		}
		return &Answer{Ready: true, Sequences: CountSequences(all)}
	}
	r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, local(t0))
	r.Workers[0].Says, r.Workers[1].Says = says(15, 30), says(0, 15)
	r.SequencesError = "timed out"
	r.Complete()
	frozen := r.Sequences.Wrong[sequencesFrozen.Cause]
	if frozen.Count != 30 || len(frozen.First) != firstSequences || frozen.First[0].Name != "order-00" ||
		frozen.First[firstSequences-1].Name != "order-19" {
		t.Errorf("%+v", frozen)
	}
}

// A sequence that is nearly used up and gets no values has two problems. Rates count for the one that nodes report.
func TestRatesCountForTheProblemThatNodesReport(t *testing.T) {
	near := WrongSequence{Name: "near", Taken: 900, Positions: 1000}
	fast := near
	fast.PerSecond = 0.5
	for range 20 {
		s := Sequences{Wrong: map[string]SomeSequences{
			sequencesNearlyUsed.Cause: {1, []WrongSequence{near}},
			sequencesUnserved.Cause:   {1, []WrongSequence{near}},
		}}
		s.addAnswer("worker 0", true, true, Sequences{Wrong: map[string]SomeSequences{
			sequencesNearlyUsed.Cause: {1, []WrongSequence{fast}},
		}})
		if got := s.Wrong[sequencesNearlyUsed.Cause].First[0].PerSecond; got != 0.5 {
			t.Fatalf("%v/s, want 0.5/s", got)
		}
	}
}
