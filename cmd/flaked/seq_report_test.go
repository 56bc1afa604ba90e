package main

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/sequence"
)

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
