package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
)

const (
	seqNow  = 1_800_000_000_000 // 2027-01-15T08:00:00Z
	seqTime = 400_000_000       // the sequence time then
)

// exampleSequences returns the records of the golden tables, in a cluster that lost data once.
func exampleSequences() ([]seq.Named, seq.State) {
	settings := seq.Settings{Block: 32, SupplyMs: 900_000, HoldMs: 86_400_000, Ceiling: 1_000_000,
		HardCeiling: 1_000_000}
	order := seq.Record{
		ID: "id1", Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Settings: settings,
		Next: 1_048_576, Credit: 900_000, At: seqTime - 4000, Gen: 17, Nonce: "n1", By: "ids-1", Incarnation: 2,
	}
	restored := order
	restored.Incarnation, restored.At = 1, seqTime-90_000
	ticket := order
	ticket.Map = sequence.Map{Start: 1000, Increment: 10, Max: math.MaxInt32}
	ticket.Ceiling, ticket.HardCeiling = 1000, 1000
	ticket.Next = 200_000_000
	frozen := ticket
	frozen.Incarnation, frozen.At = 1, seqTime-48*3_600_000
	used := order
	used.Max, used.Next, used.By = 100, 100, "me@host"
	gone := order
	gone.DeletedAt, gone.WaitMs, gone.WaitFrom, gone.By = seqNow-3_600_000, 86_430_000, seqTime, ""
	family := order
	family.Mode, family.HoldMs, family.Sections, family.Term = seq.Ordered, 3000, 2, 6
	owned := family
	owned.Sections, owned.Owner, owned.Address, owned.OwnedAt, owned.Term = 0, "n2", "10.0.0.1:7609", seqNow-600_000, 6
	free := owned
	free.Owner, free.Address, free.OwnedAt, free.Term = "", "", 0, 0
	return []seq.Named{
		{Name: "broken", Written: seqNow - 5000, Err: seq.ErrDamaged}, {Name: "gone", Record: gone},
		{Name: "msg:*", Record: family, Written: seqNow - 1000, Sections: []seq.Named{
			{Name: "msg:*0", Record: free, Written: seqNow - 4000},
			{Name: "msg:*1", Record: owned, Written: seqNow - 1000},
		}},
		{Name: "order", Record: order, Written: seqNow - 4000},
		{Name: "restored", Record: restored, Written: seqNow - 90_000},
		{Name: "ticket", Record: ticket, Written: seqNow - 4000},
		{Name: "ticket/frozen", Record: frozen, Written: seqNow - 48*3_600_000},
		{Name: "ticks", Record: owned, Written: seqNow - 7000},
		{Name: "used", Record: used, Written: seqNow - 4000},
	}, seq.State{Cluster: "c", Incarnation: 2, Time: seqTime, Changes: 9}
}

func exampleReports() (out []seqReport) {
	found, st := exampleSequences()
	for _, n := range found {
		out = append(out, describeSequence(n, st, seqNow))
	}
	return out
}

func TestSequencesGolden(t *testing.T) {
	reports := exampleReports()
	var b strings.Builder
	if err := printSequences(&b, reports, time.UnixMilli(seqNow)); err != nil {
		t.Fatal(err)
	}
	for _, d := range reports[1:] { // `flaked seq show` of a damaged record is an error
		b.WriteString("\n")
		if err := seqRows(d, time.UnixMilli(seqNow)).print(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "sequences.txt", b.String())
	goldenJSON(t, "sequences.json", reports)
}
