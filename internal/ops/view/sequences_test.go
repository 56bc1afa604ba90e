package view

import (
	"fmt"
	"math"
	"testing"

	"github.com/flaked/flaked/internal/core/seq"
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
		if got := PartText(row.done, row.all); got != row.want {
			t.Errorf("%d of %d: %s, want %s", row.done, row.all, got, row.want)
		}
	}
}

func TestSequencesAreCounted(t *testing.T) {
	const now = 1_790_000_000_000
	record := func(next, at, incarnation int64) seq.Record {
		return seq.Record{
			Map:      sequence.Map{Start: 1, Increment: 1, Max: 1000},
			Settings: seq.Settings{Block: 32, SupplyMs: 1, HoldMs: 1, Ceiling: 10, HardCeiling: 10},
			Next:     next, At: at, Credit: 100, PeakAt: at, Incarnation: incarnation,
		}
	}
	deleted, full, frozen := record(0, now, 2), record(0, now, 2), record(0, now, 1)
	deleted.DeletedAt = now
	full.MaxNames, full.Names = 5, 5
	frozen.MaxNames = 5
	found := []seq.Named{
		{Name: "deleted", Record: deleted}, {Name: "full:*", Record: full}, {Name: "frozen:*", Record: frozen},
		{Name: "some", Record: record(799, now, 2)}, {Name: "many", Record: record(800, now, 2)},
		{Name: "all", Record: record(1000, now, 2)},
		{Name: "old", Record: record(100, now-1_000_000, 1)},
	}
	for n := range 5 {
		found = append(found, seq.Named{Name: fmt.Sprint("more-", n), Record: record(900, now, 2)})
	}
	const want = "9 named sequences, 2 templates. Frozen sequences, which issue no values: frozen:*, old. " +
		"Exhausted sequences, whose values are all taken: full:*, all. " +
		"Sequences used to 80 % or more: many, more-0, more-1, more-2, more-3 and 1 more"
	if got := CountSequences(found, seq.State{Incarnation: 2, Time: now}).Line(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := CountSequences(found[3:4], seq.State{Incarnation: 2, Time: now}).Line(); got != "1 named sequence" {
		t.Error(got)
	}
	if got := CountSequences(found[:1], seq.State{Incarnation: 2, Time: now}); got != nil {
		t.Errorf("a tombstone counts: %+v", got)
	}
}
