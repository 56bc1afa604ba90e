package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/testkit/slots"
)

const t0, hour = slots.T0, slots.Hour

var (
	exampleCluster, liveEntry        = slots.Cluster, slots.Live
	dead, expired, stopped, released = slots.Dead, slots.Expired, slots.Stopped, slots.Released
)

// judged returns the report of `flaked status` before it asks.
func judged(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) health.Report {
	return health.DraftOf(name, cl, entries, local).Complete()
}

func local(ms int64) time.Time { return time.UnixMilli(ms) }

func exampleReport() health.Report {
	d := health.DraftOf("prod", exampleCluster(), []coordinator.Entry{
		liveEntry(7, 1200), liveEntry(8, 61_000, dead, func(e *coordinator.Entry) { e.Slot.Name = "\x1b[2Jx" }),
		liveEntry(9, 5*hour, stopped, func(e *coordinator.Entry) { e.Slot.Address = "" }),
		liveEntry(10, 5*hour, released, expired),
		liveEntry(11, 900, func(e *coordinator.Entry) {
			e.Slot.Name, e.Slot.ReportedClock, e.Slot.LeaseUntil = "web", t0-1500, t0+hour/2
		}),
		liveEntry(12, 900, func(e *coordinator.Entry) { e.Slot.Admin = "10.0.0.1:7610" }),
	}, local(t0))
	d.Workers[0].Outcome, d.Workers[0].Says = health.Answered, &health.Answer{Ready: true}
	d.Workers[1].Outcome = health.NoAnswer
	d.Workers[4].Outcome, d.Workers[4].Says = health.Answered,
		&health.Answer{Phase: "refusing", Cause: "clock-behind", Reason: "-CLOCK the clock is behind"}
	d.Workers[5].Outcome = health.TimedOut
	for _, lost := range []int{13, 14, 15, 17} { // those beside each other take one row
		d.Workers = append(d.Workers, health.WorkerReport{Worker: lost, State: health.RecordMissing,
			LeaseLeftMs: new(int64(hour))})
	}
	d.Workers = append(d.Workers, health.WorkerReport{Worker: 18, State: health.RecordMissing,
		LeaseLeftMs: new(int64(9000))})
	return d.Complete()
}

func TestStatusTableGolden(t *testing.T) {
	var b bytes.Buffer
	if err := printStatus(&b, exampleReport()); err != nil {
		t.Fatal(err)
	}
	golden(t, "status.txt", b.String())
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
		if got := (health.WorkerReport{ClockOffsetMs: &row.ahead,
			ClockUncertaintyMs: &row.uncertain}).OffsetText(); got != row.want {
			t.Errorf("%v: %q", row, got)
		}
	}
	if got := (health.WorkerReport{}).OffsetText(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestStatusJSONGolden(t *testing.T) {
	r := judged("prod", exampleCluster(), []coordinator.Entry{liveEntry(7, 1200),
		liveEntry(10, 5*hour, released, expired, func(e *coordinator.Entry) {
			e.Slot.Labels, e.Slot.ReportedClock, e.Slot.Node = coordinator.Labels{}, 0, ""
		})}, local(t0))
	r.Workers[0].Outcome = health.Answered
	r.Workers[0].Says = &health.Answer{Ready: true, Phase: "serving", Degraded: []string{"zookeeper"},
		LeaseLeftMs: new(int64(3)), ReservedLeftMs: new(int64(4)), IDs: 5}
	r.Workers[1].GrantedMs = nil
	r.Summary.Problems = append(r.Summary.Problems,
		health.Problem{Severity: health.Warning, Text: "a <problem>", Advice: "mend it"})
	goldenJSON(t, "status.json", r)
}
