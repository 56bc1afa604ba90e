package health

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

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
	d := DraftOf("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0), liveEntry(2, 0)},
		local(t0))
	d.Sequences = CountSequences([]SequenceReport{use("near", 900, 0, ""), use("order", 5, 0, ""), use("all", 1000, 0, "")})
	holds := use("all", 1000, 2, record.Exhausted)
	holds.Held = 1200
	d.Workers[0].Says = says(true, holds, use("near", 900, 0.5, ""), use("order", 5, 9, record.NoBlock))
	d.Workers[1].Says = says(true, use("near", 900, 1.5, ""), use("order", 5, 9, record.Confirming),
		use("busy", 5, 9, record.CeilingReached), use("lost", 5, 9, record.Frozen), use("deleted", 1000, 9, record.Exhausted))
	d.Workers[2].Says = says(false, use("order", 5, 0, record.NoBlock))
	d.Workers[2].Says.Cause = "confirming"
	r := d.Complete()
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
	if again := d.Complete(); !reflect.DeepEqual(again, r) {
		t.Errorf("another report of the same draft: %+v", again)
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
	d := DraftOf("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, local(t0))
	d.Workers[0].Says, d.Workers[1].Says = says(15, 30), says(0, 15)
	d.SequencesError = "timed out"
	r := d.Complete()
	frozen := r.Sequences.ByCause[rowSequencesFrozen.cause]
	if frozen.Count != 30 || len(frozen.First) != firstSequences || frozen.First[0].Name != "order-00" ||
		frozen.First[firstSequences-1].Name != "order-19" {
		t.Errorf("%+v", frozen)
	}
}

// A sequence that is nearly used up and gets no values has two problems. Rates count for the one that nodes report.
func TestRatesCountForTheProblemThatNodesReport(t *testing.T) {
	near := SequenceNote{Name: "near", Taken: 900, Positions: 1000}
	fast := near
	fast.PerSecond = 0.5
	for range 20 {
		s := &Sequences{ByCause: map[string]SequenceGroup{
			rowSequencesNearlyUsed.cause: {1, []SequenceNote{near}},
			rowSequencesUnserved.cause:   {1, []SequenceNote{near}},
		}}
		got := merge(s, true, []WorkerReport{{Says: &Answer{Ready: true, Sequences: &Sequences{
			ByCause: map[string]SequenceGroup{rowSequencesNearlyUsed.cause: {1, []SequenceNote{fast}}},
		}}}})
		if rate := got.ByCause[rowSequencesNearlyUsed.cause].First[0].PerSecond; rate != 0.5 {
			t.Fatalf("%v/s, want 0.5/s", rate)
		}
	}
}

// A node names only the first of its sequences with a problem. Without ZooKeeper, the others count, too, but not twice
// if several nodes say the same.
func TestSequencesThatNodesDoNotNameCount(t *testing.T) {
	says := func(ready bool, state SequenceState, from, to int) WorkerReport {
		all := make([]SequenceReport, 0, to-from)
		for n := from; n < to; n++ {
			q := SequenceReport{Name: fmt.Sprintf("order-%03d", n), State: state, AtNode: &AtNode{}}
			if state == SeqInUse {
				q.Refusal = record.NoBlock
			}
			all = append(all, q)
		}
		return WorkerReport{Says: &Answer{Ready: ready, Sequences: CountSequences(all)}}
	}
	count := func(records *Sequences, read bool, nodes ...WorkerReport) string {
		s := merge(records, read, nodes)
		return fmt.Sprintf("%d: %d frozen, %d unserved", s.Count, s.ByCause[rowSequencesFrozen.cause].Count,
			s.ByCause[rowSequencesUnserved.cause].Count)
	}
	frozen := says(true, SeqFrozen, 0, 300)
	for name, row := range map[string]struct{ got, want string }{
		"one node":             {count(nil, false, frozen), "300: 300 frozen, 0 unserved"},
		"two nodes":            {count(nil, false, frozen, frozen), "300: 300 frozen, 0 unserved"},
		"a later node":         {count(nil, false, frozen, says(true, SeqFrozen, 290, 310)), "300: 300 frozen, 0 unserved"},
		"the records decide":   {count(CountSequences(nil), true, frozen), "0: 0 frozen, 0 unserved"},
		"no values of frozen":  {count(nil, false, frozen, says(true, SeqInUse, 0, 300)), "300: 300 frozen, 0 unserved"},
		"a node that confirms": {count(nil, false, frozen, says(false, SeqInUse, 0, 300)), "300: 300 frozen, 0 unserved"},
	} {
		if row.got != row.want {
			t.Errorf("%s: %s, want %s", name, row.got, row.want)
		}
	}
}
