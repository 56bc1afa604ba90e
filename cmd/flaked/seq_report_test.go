package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/sequence"
)

// A section of a family can be exhausted while the others issue values.
func TestSeqShowSaysHowManySectionsAreExhausted(t *testing.T) {
	for _, row := range []struct {
		state    health.SequenceState
		why      string
		sections int
		want     string
	}{
		{health.SeqExhausted, "1 of 64 sections", 64, "exhausted (1 of 64 sections): nodes have taken all their values. " +
			"`flaked seq set 'order' --max VALUE` raises the max"},
		{health.SeqExhausted, "", 0, "exhausted: nodes have taken all values. `flaked seq set 'order' --max VALUE` " +
			"raises the max"},
		{health.SeqAfterLoss, "2 of 3 sections", 3, "after-loss (2 of 3 sections): ZooKeeper lost data since a node last " +
			"took values. The next node that takes some first skips 0 values"},
		{health.SeqDamaged, "1 of 3 sections missing in ZooKeeper", 2, "damaged: 1 of 3 sections missing in ZooKeeper. " +
			"Nodes that know them put them back. If none does, delete the family, and create it again"},
	} {
		d := health.SequenceReport{Name: "order", State: row.state, Why: row.why, KnownSections: row.sections}
		if got := seqRows(d, time.Now(), true)[1]; got[1] != row.want {
			t.Errorf("%s, want %s", got[1], row.want)
		}
	}
}

// The transcripts leave out the ages and the widths of the columns, because they differ each time.
func TestSequencesGolden(t *testing.T) {
	const now = 1_800_000_000_000
	order := record.Record{ID: "id1", Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript},
		Settings: record.Settings{Block: 32, SupplyMs: 900_000, HoldMs: 86_400_000, Ceiling: 1_000_000,
			HardCeiling: 1_000_000}, Next: 1_048_576, WriteCount: 17, WrittenBy: "ids-1"}
	used, gone := order, order
	used.Max, used.Next, used.WrittenBy = 100, 100, "me@host"
	gone.DeletedAt, gone.WrittenBy = now-3_600_000, ""
	var reports []health.SequenceReport
	for _, n := range []record.Named{
		{Name: "broken", WrittenAt: now - 5000, Err: record.ErrDamaged}, {Name: "gone", Record: gone},
		{Name: "order", Record: order, WrittenAt: now - 4000}, {Name: "used", Record: used, WrittenAt: now - 90_000},
	} {
		reports = append(reports, health.RecordedReport(n, record.State{Cluster: "c"}, now))
	}
	var b strings.Builder
	if err := printSequences(&b, reports, now); err != nil {
		t.Fatal(err)
	}
	golden(t, "sequences.txt", b.String())
}
