package web

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/sequence"
)

// hostile is a name that somebody wrote to ZooKeeper.
const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">"'`

// picture returns full as a node that serves as worker 7, and a cluster with workers in every state.
func picture() Config {
	cfg := full()
	cfg.Ready = func() error { return nil }
	cfg.Node = func() node.Snapshot {
		w := serving()
		w.Cluster, w.NowMs = fullNode().Cluster, at0
		return w
	}
	cfg.Events.Accept(hostile, hclog.Error, hostile, hostile, hostile)
	workers := []health.WorkerReport{
		{Worker: 1, Name: "ids-1", State: health.Disconnected}, {Worker: 2, State: health.Live, ClockOffsetMs: new(-3_600_000.0)},
		{Worker: 3, State: health.Live, ReportAgeMs: new(int64(4100))}, {Worker: 4, Name: hostile, State: health.Stopped},
		{Worker: 5, State: health.Free}, {Worker: 6, State: health.RecordMissing}, {Worker: 7, State: health.Live},
	}
	for i := range workers {
		w := &workers[i]
		w.HeartbeatMs, w.Address, w.Admin = 3000, fmt.Sprintf("10.0.0.%d:7609", i+1), fmt.Sprintf("10.0.0.%d:7610", i+1)
		w.ClockUncertaintyMs, w.LeaseLeftMs = new(0.5), new(int64(86_000_000))
	}
	cfg.Slots = func(context.Context) (health.Report, error) {
		return health.Report{Workers: workers, Summary: health.Summary{Slots: 32, Used: 6, Live: 3,
			Problems: []health.Problem{{Text: "worker 1 (ids-1): The node is not connected"}}}}, nil
	}
	return cfg
}

// used returns a sequence of 1,000 values, of which nodes have taken so many.
func used(name string, next int64, change ...func(*mode.Use)) mode.Use {
	u := mode.Use{
		Name: name, PerSecond: 2, Held: 20,
		Record: record.Record{
			Map:      sequence.Map{Start: 1, Increment: 1, Max: 1000},
			Settings: record.Settings{Block: 32, SupplyMs: 1, HoldMs: 1, Ceiling: 10, HardCeiling: 10},
			Next:     next, CreditAt: time.Now().UnixMilli(), Credit: 100, PeakAt: time.Now().UnixMilli(), Incarnation: 2,
			WrittenBy: "ids-3",
		},
	}
	for _, f := range change {
		f(&u)
	}
	return u
}

// owned makes a sequence an ordered one, with an owner.
func owned(u *mode.Use) {
	u.Record.Mode, u.Record.Owner, u.Record.Address, u.Record.Term = record.Ordered, "n", "10.0.0.1:7609", 3
	u.Record.OwnedAt = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMilli()
}

// someSequences returns sequences in every state and of every mode.
func someSequences() seq.Report {
	return seq.Report{
		State: record.State{Incarnation: 2, Time: time.Now().UnixMilli()}, ReadAgo: time.Second, Issued: 7, Blocks: 3, Waits: 2,
		Refused: map[record.Reason]int64{record.CeilingReached: 4},
		Sequences: []mode.Use{
			used("large", 1<<40, func(u *mode.Use) { u.Record.Max = 1<<53 - 1 }), used("near", 800),
			used("lost", 500, func(u *mode.Use) { u.Record.CreditAt, u.Record.Incarnation = u.Record.CreditAt-1_000_000, 1 }),
			used("order:2026", 123_456, func(u *mode.Use) {
				u.Record.Max, u.Record.WrittenBy, u.PerSecond = 2_147_483_647, hostile, 1234.5
			}),
			used("ceiling", 5, func(u *mode.Use) { u.Refusal, u.PerSecond = record.CeilingReached, 0.04 }), used("all", 1000),
			used("ticks", 5, owned, func(u *mode.Use) { u.FromOthers, u.Lapses = 1200, 1 }),
			used("free", 5, owned, func(u *mode.Use) { u.Record.Owner = "" }),
			used("msg:*0", 5, owned, func(u *mode.Use) { u.Owns = true }),
			used("msg:*1", 5, owned, func(u *mode.Use) { u.FromOthers = 7 }),
			used("cut", 5, owned, func(u *mode.Use) { u.Refusal = record.NoOwner }),
			used("invoice", 5, func(u *mode.Use) { u.Record.Mode, u.Unanswered = record.Strict, 1200 }),
			used("receipt", 5, func(u *mode.Use) { u.Record.Mode = record.Strict }),
		},
	}
}

var (
	quoted   = regexp.MustCompile(`"[^"<>]*"`)
	ofOthers = regexp.MustCompile(`(?i)<script>|<img|<[^>]* (on[a-z]+|style)=`)
)

// The page is complete without a script, and text that others wrote is escaped.
func TestPageWithoutScript(t *testing.T) {
	addr, _ := start(t, picture())
	code, header, body := do(t, "GET", "http://"+addr+"/?id=2123840322550104099")
	if code != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" ||
		header.Get("Content-Security-Policy") != contentPolicy {
		t.Errorf("%d %v", code, header)
	}
	if found := ofOthers.FindString(quoted.ReplaceAllString(body, `""`)); found != "" {
		t.Error(found)
	}
	for _, want := range []string{
		`<noscript><meta http-equiv="refresh" content="5"></noscript>`, "cluster orders", "Serving IDs",
		"worker 1 (ids-1): The node is not connected", ">overdue<", "23h53m", "812ms ago", "3 live", "&lt;script&gt;",
		"-1h0m &#43;/- 0.5ms slow", "10.0.0.7:7609", "2026-11-20T18:06:06.598Z", "number 35 of its tick",
		"clock offset is large", "IDs end on 2080-07-10", `<a href="http://10.0.0.1:7610/"`, "this node",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, no := range []string{"cannot render", "http://10.0.0.7", "10.0.0.5", "was live"} {
		if strings.Contains(body, no) {
			t.Errorf("%q in\n%s", no, body)
		}
	}
}

func TestSequencesOnThePage(t *testing.T) {
	addr, _ := start(t, picture())
	_, _, body := do(t, "GET", "http://"+addr+"/")
	_, table, _ := strings.Cut(body, `<div id="sequences">`)
	table, _, _ = strings.Cut(table, "</section>")
	var names []string
	for _, found := range regexp.MustCompile(`data-is="Name">([^<]*)<`).FindAllStringSubmatch(table, -1) {
		names = append(names, found[1])
	}
	const order = "lost all ceiling cut near free invoice msg:* receipt ticks large order:2026"
	if got := strings.Join(names, " "); got != order {
		t.Errorf("%s, want %s", got, order)
	}
	for _, want := range []string{
		`<b class="bad">frozen</b>`, `<b class="bad">exhausted</b>`, "refuses: ceiling", ">80.0%<", ">123,457<", ">1,235/s<",
		">&lt;0.1/s<", ">in less than 2 minutes<", ">in about 20 days, 2026-12-12<", ">in more than 100 years<", "ids-3",
		"owner 10.0.0.1:7609 since 2027-01-15 08:00:00, 3 owners so far, 1 lease lost here<",
		">20, and got 1,200 from other nodes<", ">no owner, 3 owners so far<", "refuses: no-owner",
		">this node owns 1 of 2 sections, 6 owners so far<", ">40, and got 7 from other nodes<",
		">strict<", ">strict: 1,200 unanswered<",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if strings.Contains(table, "more: see") {
		t.Error("the table is cut")
	}
}

// The page shows the worst of many workers and sequences, and says how many others there are. The metrics have the
// same limit.
func TestLongTablesAreCut(t *testing.T) {
	r, cluster := seq.Report{}, health.Report{}
	for n := range 1000 {
		r.Sequences = append(r.Sequences, used(fmt.Sprintf("s%03d", n), int64(n)))
		cluster.Workers = append(cluster.Workers, health.WorkerReport{Worker: n, State: health.Stopped})
	}
	cluster.Workers[500].State, cluster.Workers[501].State = health.Live, health.Disconnected
	addr, _ := start(t, Config{Issuer: knows{report: func() seq.Report { return r }},
		Slots: func(context.Context) (health.Report, error) { return cluster, nil }})
	_, _, body := do(t, "GET", "http://"+addr+"/")
	if n := strings.Count(body, `data-is="Next value"`); n != shownSequences ||
		!strings.Contains(body, "950 more: see <a href=") || !strings.Contains(body, "s999<") {
		t.Errorf("%d rows in\n%s", n, body)
	}
	if rows := regexp.MustCompile(`data-is="Worker">(\d+)<`).FindAllStringSubmatch(body, 3); len(rows) != 3 ||
		rows[0][1] != "501" || rows[1][1] != "500" || rows[2][1] != "0" || !strings.Contains(body, "968 more: see <a href=") {
		t.Errorf("%v in\n%s", rows, body)
	}
	if n := strings.Count(scrape(t, addr), "\nflaked_named_sequence_used_ratio{"); n != maxSequences {
		t.Errorf("%d sequences have metrics of their own, want %d", n, maxSequences)
	}
}

func TestPageRendersWithMissingData(t *testing.T) {
	for name, cfg := range map[string]Config{
		"nothing is known": {},
		"all is wrong":     full(),
		"ZooKeeper is away": {
			Slots: func(context.Context) (health.Report, error) {
				return health.Report{}, errors.New("ZooKeeper <is> away")
			},
			Ready: func() error { return errors.New("-NOTREADY starting reason=no-worker-yet") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := start(t, cfg)
			for _, path := range []string{"/", "/?id=x", "/?id=99999999999999999999"} {
				code, _, body := do(t, "GET", "http://"+addr+path)
				if code != 200 || strings.Contains(body, "cannot render") || !strings.Contains(body, "</html>") {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
		})
	}
}
