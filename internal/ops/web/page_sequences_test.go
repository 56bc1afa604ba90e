package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/sequence"
)

// used returns a sequence of 1,000 values, of which nodes have taken so many.
func used(name string, next int64) seq.Use {
	return seq.Use{
		Name: name, PerSecond: 2, Held: 20,
		Record: seq.Record{
			Map:      sequence.Map{Start: 1, Increment: 1, Max: 1000},
			Settings: seq.Settings{Block: 32, SupplyMs: 1, HoldMs: 1, Ceiling: 10, HardCeiling: 10},
			Next:     next, At: time.Now().UnixMilli(), Credit: 100, PeakAt: time.Now().UnixMilli(), Incarnation: 2,
			By: "ids-3",
		},
	}
}

// someSequences returns sequences in every state.
func someSequences() seq.Report {
	lost, ceiling, large, orders := used("lost", 500), used("ceiling", 5), used("large", 1<<40),
		used("order:2026", 123_456)
	lost.Record.At, lost.Record.Incarnation = lost.Record.At-1_000_000, 1
	ceiling.Refusal, ceiling.PerSecond = seq.CeilingReached, 0.04
	large.Record.Max, orders.Record.Max = 1<<53-1, 2_147_483_647
	orders.PerSecond, orders.Record.By = 1234.5, hostile
	return seq.Report{State: seq.State{Incarnation: 2, Time: time.Now().UnixMilli()},
		Sequences: []seq.Use{large, used("near", 800), lost, orders, ceiling, used("all", 1000)}}
}

func TestSequencesOnThePage(t *testing.T) {
	cfg := picture(32, 20)
	cfg.Sequences = someSequences
	addr, _ := start(t, cfg)
	_, _, body := do(t, "GET", "http://"+addr+"/")
	_, table, _ := strings.Cut(body, `<div id="sequences">`)
	table, _, _ = strings.Cut(table, "</section>")
	last := -1
	for _, name := range []string{"lost", "all", "ceiling", "near", "large", "order:2026"} {
		at := strings.Index(table, `data-is="Name">`+name+"<")
		if at <= last {
			t.Errorf("%s is at %d, after %d", name, at, last)
		}
		last = at
	}
	for _, want := range []string{
		`<b class="bad">frozen</b>`, `<b class="bad">exhausted</b>`, `refuses: ceiling`, `>80.0%<`,
		">123,457<", ">1,235/s<", ">&lt;0.1/s<", ">1m50s<",
		">20d3h<", "&gt; 100 years", "ids-3",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	for _, want := range []string{"Frozen sequences, which issue no values: lost.",
		"flaked seq set &#39;all&#39; --max VALUE"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if found := foreign(body); found != "" || strings.Contains(body, "cannot render") ||
		strings.Contains(table, "more are not shown") {
		t.Errorf("%s in\n%s", found, body)
	}
}

func TestLongTableOfSequencesIsCut(t *testing.T) {
	var r seq.Report
	for n := range 1000 {
		r.Sequences = append(r.Sequences, used(fmt.Sprintf("s%03d", n), int64(n)))
	}
	addr, _ := start(t, Config{Sequences: func() seq.Report { return r }})
	_, _, body := do(t, "GET", "http://"+addr+"/")
	if n := strings.Count(body, `data-is="Next value"`); n != shownSequences ||
		!strings.Contains(body, "950 more: see <a href=") || !strings.Contains(body, "s999<") {
		t.Errorf("%d rows in\n%s", n, body)
	}
}

func TestStatusWithoutSequences(t *testing.T) {
	addr, _ := start(t, Config{})
	code, _, body := do(t, "GET", "http://"+addr+"/v1/status")
	if code != http.StatusOK || !strings.Contains(body, `"sequences":null`) {
		t.Errorf("%d %s", code, body)
	}
}

// An ordered sequence shows its owner, and a family how many of its sections this node owns.
func TestOwnersOnThePage(t *testing.T) {
	ordered := func(name string, change func(*seq.Use)) seq.Use {
		u := used(name, 5)
		u.Record.Mode, u.Record.Owner, u.Record.Address, u.Record.Term = seq.Ordered, "n", "10.0.0.1:7609", 3
		u.Record.OwnedAt = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMilli()
		change(&u)
		return u
	}
	addr, _ := start(t, Config{Sequences: func() seq.Report {
		return seq.Report{State: seq.State{Incarnation: 2}, Sequences: []seq.Use{
			ordered("ticks", func(u *seq.Use) { u.Passed, u.Lapses = 1200, 1 }),
			ordered("free", func(u *seq.Use) { u.Record.Owner = "" }),
			ordered("msg:*0", func(u *seq.Use) { u.Owns = true }), ordered("msg:*1", func(u *seq.Use) { u.Passed = 7 }),
			ordered("cut", func(u *seq.Use) { u.Refusal = seq.NoOwner }),
		}}
	}})
	_, _, body := do(t, "GET", "http://"+addr+"/")
	for _, want := range []string{
		"owner 10.0.0.1:7609 since 2027-01-15 08:00:00, 3 owners so far, 1 lease lost here<",
		">20, and got 1,200 from other nodes<", ">no owner, 3 owners so far<", "refuses: no-owner",
		">msg:*<", ">this node owns 1 of 2 sections, 6 owners so far<", ">40, and got 7 from other nodes<",
		"Ordered sequences whose owner a node cannot ask: cut (no-owner).",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	metrics := scrape(t, addr)
	for _, line := range []string{
		`flaked_named_sequences{state="family"} 1`,
		`flaked_named_sequence_owned_sections{sequence="msg:*"} 1`,
		`flaked_named_sequence_owned_sections{sequence="ticks"} 0`,
		`flaked_named_sequence_owned_timestamp_seconds{sequence="msg:*"} 1.8e+09`,
		`flaked_named_sequence_ownerships_total{sequence="msg:*"} 6`,
		`flaked_named_sequence_passed_values_total{sequence="ticks"} 1200`,
		`flaked_named_sequence_lapses_total{sequence="ticks"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

func TestStrictSequenceHoldsNothing(t *testing.T) {
	for _, row := range []struct {
		use  seq.Use
		want string
	}{
		{seq.Use{Held: 12345}, "12,345"},
		{seq.Use{Record: seq.Record{Mode: seq.Strict}}, "strict"},
		{seq.Use{Record: seq.Record{Mode: seq.Strict}, Unanswered: 1200}, "strict: 1,200 unanswered"},
	} {
		if got := (seqView{view.Sequence{Use: row.use}}).Holds(); got != row.want {
			t.Errorf("%q, not %q", got, row.want)
		}
	}
}
