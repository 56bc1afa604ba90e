package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/testkit/slots"
)

const t0, hour = slots.T0, slots.Hour

var (
	exampleCluster, liveEntry        = slots.Cluster, slots.Live
	dead, expired, stopped, released = slots.Dead, slots.Expired, slots.Stopped, slots.Released
)

// judged returns the report of `flaked status` before it asks.
func judged(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) view.Report {
	r := view.Assess(name, cl, entries, local)
	r.Judge()
	return r
}

func local(ms int64) time.Time { return time.UnixMilli(ms) }

func exampleReport() view.Report {
	r := judged("prod", exampleCluster(), []coordinator.Entry{
		liveEntry(7, 1200), liveEntry(8, 61_000, dead, func(e *coordinator.Entry) { e.Slot.Name = "\x1b[2Jx" }),
		liveEntry(9, 5*hour, stopped, func(e *coordinator.Entry) { e.Slot.Address = "" }),
		liveEntry(10, 5*hour, released, expired),
		liveEntry(11, 900, func(e *coordinator.Entry) {
			e.Slot.Name, e.Slot.ReportedClock, e.Slot.LeaseUntil = "web", t0-1500, t0+hour/2
		}),
		liveEntry(12, 900, func(e *coordinator.Entry) { e.Slot.Admin = "10.0.0.1:7610" }),
	}, local(t0))
	r.Workers[0].Asked, r.Workers[0].Says = view.Answered, &view.Answer{Ready: true}
	r.Workers[1].Asked = view.NoAnswer
	r.Workers[4].Asked, r.Workers[4].Says = view.Answered,
		&view.Answer{Cause: "clock-behind", Reason: "-CLOCK the clock is behind"}
	r.Workers[5].Asked = view.TimedOut
	return r
}

func TestStatusTableGolden(t *testing.T) {
	var b bytes.Buffer
	if err := (statusReport{Report: exampleReport()}).print(&b); err != nil {
		t.Fatal(err)
	}
	want := `WORKER  NAME   ADDRESS        STATE         SAYS                     REPORT  CLOCK                LEASE  TERM  VERSION
7       api    10.0.0.1:7609  live          ready                    1.2s    +1ms +/- 1ms         1h0m   3     1.2.3
8       ` + "\ufffd" + `[2Jx  10.0.0.1:7609  disconnected  no answer                1m1s    -                    1h0m   3     1.2.3
9       api    -              stopped       -                        5h0m    -                    1h0m   3     1.2.3
11      web    10.0.0.1:7609  live          not ready: clock-behind  900ms   -600ms +/- 1ms slow  30m0s  3     1.2.3
12      api    10.0.0.1:7609  live          timed out                900ms   +1ms +/- 1ms         1h0m   3     1.2.3

cluster prod (c1), layout time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657
5 of 1024 workers held: 3 live, 1 disconnected, 1 stopped; 0 releasing, 0 record-missing, 1019 free; 6 ever used
if ZooKeeper fails now, every serving node lasts at least 30m0s (first: worker 11 (web))
3 clocks compared with that of ZooKeeper's leader, furthest off: worker 11 (web), -600ms +/- 1ms slow
nodes asked: 2 answered, 1 did not answer, 1 did not answer in time
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}

func TestOffsetCell(t *testing.T) {
	for _, row := range []struct {
		ahead, uncertain float64
		want             string
	}{
		{0, 0, "0ms +/- 0ms"},
		{0, 2.5, "0ms +/- 2.5ms"},
		{1, 0.5, "+1ms +/- 0.5ms fast"},
		{-1.25, 0.5, "-1.3ms +/- 0.5ms slow"},
		{-1, 1, "-1ms +/- 1ms"}, // it may be either
		{9999, 4, "+9999ms +/- 4ms fast"},
		{10_000, 4, "+10s +/- 4ms fast"},
		{-3_600_000, 12_000, "-1h0m +/- 12s slow"},
	} {
		if got := (view.WorkerReport{ClockOffsetMs: &row.ahead,
			ClockUncertaintyMs: &row.uncertain}).OffsetText(); got != row.want {
			t.Errorf("%v: %q", row, got)
		}
	}
	if got := (view.WorkerReport{}).OffsetText(); got != "" {
		t.Errorf("%q", got)
	}
}

// Scripts rely on the whole document.
func TestStatusJSONGolden(t *testing.T) {
	var b bytes.Buffer
	r := judged("prod", exampleCluster(), []coordinator.Entry{liveEntry(7, 1200),
		liveEntry(10, 5*hour, released, expired, func(e *coordinator.Entry) {
			e.Slot.Labels, e.Slot.ReportedClock, e.Slot.Node = coordinator.Labels{}, 0, ""
		})}, local(t0))
	r.Workers[0].Asked = view.Answered
	r.Workers[0].Says = &view.Answer{Ready: true, Phase: "serving", Degraded: []string{"zookeeper"},
		LeaseLeftMs: new(int64(3)), ReservedLeftMs: new(int64(4)), IDs: 5}
	r.Workers[1].GrantedMs = nil
	r.Summary.Problems = append(r.Summary.Problems,
		view.Problem{Severity: view.Warning, Text: "a <problem>", Advice: "mend it"})
	if err := printJSON(&b, statusReport{Report: r}); err != nil {
		t.Fatal(err)
	}
	if got, want := compacted(t, b.String()), compacted(t, statusGolden); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

// compacted returns a JSON document without blanks between its tokens.
func compacted(t *testing.T, doc string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(doc)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const statusGolden = `{"source":"zookeeper","zookeeper_error":"",
"cluster":{"name":"prod","uuid":"c1","layout":"time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657","slots":1024,"datacenter":0,"lease_ms":86400000,"confirm_ms":12000,"on_rollback":"leaf","borrow_ms":0,"sequence_start":"random","segment_start":"zero","confirmed":true,"frozen":false,"frozen_until_ms":0,"frozen_by":"","ids_end_ms":3487858230209},
"workers":[
{"worker":7,"name":"api","address":"10.0.0.1:7609","state":"live","phase":"serving","term":3,"clock_offset_ms":1,"clock_uncertainty_ms":1,"lease_left_ms":3600000,"lease_ends_ms":1795200409000,"report_age_ms":1200,
"version":"1.2.3","node":"n1","host":"h1","pid":42,"confirmed":true,"heartbeat_ms":3000,"admin":"","granted_ms":1795190000000,"released_by":"","asked":"answered","why":"",
"says":{"ready":true,"reason":"","cause":"","phase":"serving","degraded":["zookeeper"],"lease_left_ms":3,"reserved_left_ms":4,"zookeeper_ok":false,"ids":5}},
{"worker":10,"name":"","address":"","state":"free","phase":"released","term":3,"clock_offset_ms":null,"clock_uncertainty_ms":null,"lease_left_ms":null,"lease_ends_ms":null,"report_age_ms":null,
"version":"","node":"","host":"","pid":0,"confirmed":true,"heartbeat_ms":3000,"admin":"","granted_ms":null,"released_by":"","asked":"","why":"","says":null}],
"summary":{"slots":1024,"used":2,"held":1,"live":1,"disconnected":0,"stopped":0,"releasing":0,"record_missing":0,"free":1023,"shortest_lease_ms":3600000,"now_ms":1795196809000,"degraded":false,"problems":[{"cause":"","severity":"warning","text":"a <problem>","advice":"mend it"}]},
"sequences":null,"sequences_error":""}`
