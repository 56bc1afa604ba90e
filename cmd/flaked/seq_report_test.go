package main

import (
	"encoding/json"
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
	return []seq.Named{
		{Name: "gone", Record: gone}, {Name: "order", Record: order}, {Name: "restored", Record: restored},
		{Name: "ticket", Record: ticket}, {Name: "ticket/frozen", Record: frozen}, {Name: "used", Record: used},
	}, seq.State{Cluster: "c", Incarnation: 2, Time: seqTime, Changes: 9}
}

func exampleReports() (out []seqReport) {
	found, st := exampleSequences()
	for _, n := range found {
		out = append(out, describeSequence(n.Name, n.Record, st, seqNow))
	}
	return out
}

func TestSequenceTableGolden(t *testing.T) {
	const want = `
NAME           NEXT        INC  MAX    USED   CEILING    LAST WRITER  AGE    STATE
gone           1048577     1    js     <0.1%  1,000,000  -            1h0m   deleted
order          1048577     1    js     <0.1%  1,000,000  ids-1        4.0s   in-use
restored       1048577     1    js     <0.1%  1,000,000  ids-1        1m30s  after-loss
ticket         2000001000  10   int32  93.1%  1,000      ids-1        4.0s   in-use
ticket/frozen  2000001000  10   int32  93.1%  1,000      ids-1        2d0h   frozen
used           -           1    100    100%   1,000,000  me@host      4.0s   exhausted
`
	var b strings.Builder
	if err := printSequences(&b, exampleReports(), time.UnixMilli(seqNow)); err != nil {
		t.Fatal(err)
	}
	if b.String() != strings.TrimPrefix(want, "\n") {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

func TestShownSequence(t *testing.T) {
	reports := exampleReports()
	text := func(d seqReport) string {
		var b strings.Builder
		if err := seqRows(d, time.UnixMilli(seqNow)).print(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const order = `
sequence               order
state                  in-use
mode                   segment
next value             1048577
start                  1
increment              1
max                    9007199254740991 (js)
used                   <0.1%
block                  32 values or more
supply                 15m0s
hold                   24h0m0s
ceiling                1,000,000 a second
hard ceiling           1,000,000 a second
last writer            ids-1
last taken or renewed  2027-01-15T07:59:56.000Z (4.0s ago)
id                     id1
next position          1048576 of 9007199254740991
incarnation            2 (the cluster's: 2)
`
	if got := text(reports[1]); got != strings.TrimPrefix(order, "\n") {
		t.Errorf("%s\nwant\n%s", got, order)
	}
	for i, want := range map[int]string{
		0: "deleted: nodes that are cut off may issue its values for another 24h0m30s",
		2: "after-loss: ZooKeeper lost data since a node last took values. The next node that takes some first skips " +
			"90,900,000 values\n",
		4: "frozen: ZooKeeper lost data, and many values may have been issued since. `flaked seq set 'ticket/frozen' " +
			"--next VALUE --vouch-after-loss` says where it goes on\n",
		5: "exhausted: nodes have taken all values. `flaked seq set 'used' --max VALUE` raises the max\n",
	} {
		if got := text(reports[i]); !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
}

func TestSequenceJSONGolden(t *testing.T) {
	reports := exampleReports()
	for i, want := range map[int]string{
		2: `{"name":"restored","state":"after-loss","mode":"segment","next":"1048577","start":"1","increment":"1","max":"9007199254740991","used":1.1641532182693484e-10,"skips":"90900000",` +
			`"block":32,"supply_ms":900000,"hold_ms":86400000,"ceiling":1000000,"hard_ceiling":1000000,"by":"ids-1","at_ms":1799999910000,"deleted_ms":null,"purgeable_in_ms":null,"max_names":0,"names":0,` +
			`"id":"id1","next_position":"1048576","positions":"9007199254740991","incarnation":1,"cluster_incarnation":2}`,
		5: `{"name":"used","state":"exhausted","mode":"segment","next":null,"start":"1","increment":"1","max":"100","used":1,"skips":"0",` +
			`"block":32,"supply_ms":900000,"hold_ms":86400000,"ceiling":1000000,"hard_ceiling":1000000,"by":"me@host","at_ms":1799999996000,"deleted_ms":null,"purgeable_in_ms":null,"max_names":0,"names":0,` +
			`"id":"id1","next_position":"100","positions":"100","incarnation":2,"cluster_incarnation":2}`,
	} {
		got, err := json.Marshal(reports[i])
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
		var back seqReport
		if err := json.Unmarshal(got, &back); err != nil || back.Max != reports[i].Max ||
			(back.Next == nil) != (reports[i].Next == nil) || back.Next != nil && *back.Next != *reports[i].Next {
			t.Errorf("read back: %v %+v", err, back)
		}
	}
}
