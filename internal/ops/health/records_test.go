package health

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/slots"
)

const t0, hour = slots.T0, slots.Hour

var (
	exampleCluster, liveEntry        = slots.Cluster, slots.Live
	dead, expired, stopped, released = slots.Dead, slots.Expired, slots.Stopped, slots.Released
)

// judged returns the report of `flaked status` before it asks.
func judged(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) Report {
	return DraftOf(name, cl, entries, local).Complete()
}

// assessed returns the report of nodes that were asked, with these workers.
func assessed(why string, workers []WorkerReport, now time.Time) Report {
	return Draft{Source: SourceNodes, ZooKeeperError: why, Workers: workers,
		Summary: Summary{NowMs: now.UnixMilli()}}.Complete()
}

func local(ms int64) time.Time { return time.UnixMilli(ms) }

func TestStates(t *testing.T) {
	for _, row := range []struct {
		name  string
		entry coordinator.Entry
		want  WorkerState // "" for not shown
		wrong string      // part of the problem, "" for none
	}{
		{"live", liveEntry(0, 0), "live", ""},
		{"disconnected", liveEntry(0, 0, dead), "disconnected", "worker 0 (api): The node is not connected"},
		{"disconnected, lease over", liveEntry(0, 0, dead, expired), "free", "No node serves"},
		{"stopped", liveEntry(0, 0, stopped), "stopped", "No node serves"},
		{"stopped, lease over", liveEntry(0, 0, stopped, expired), "free", "No node serves"},
		{"released", liveEntry(0, 0, released, expired), "free", "No node serves"},
		{"released ahead", liveEntry(0, 0, released), "releasing", "No node serves"},
		{"never held", coordinator.Entry{Slot: coordinator.Slot{Released: true}}, "", ""},
		{"absent", coordinator.Entry{Missing: true, Slot: coordinator.Slot{Term: -1}}, "record-missing",
			"worker 0: ZooKeeper has no readable record"},
		{"unreadable", coordinator.Entry{Slot: coordinator.Slot{Term: -1}}, "record-missing",
			"ZooKeeper has no readable record"},
		{"unreadable, live", coordinator.Entry{Live: true, Slot: coordinator.Slot{Term: -1}}, "record-missing",
			"ZooKeeper has no readable record"},
		{"kept for a lost holder", coordinator.Entry{Slot: coordinator.Slot{StandsIn: true, LeaseUntil: t0 + hour}},
			"record-missing", "ZooKeeper has no readable record"},
		{"kept until now", coordinator.Entry{Slot: coordinator.Slot{StandsIn: true, LeaseUntil: t0 - 5000}}, "", ""},
		{"refusing", liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.Phase = "refusing" }), "live",
			"worker 0 (api): The node reported that it refuses to serve"},
		{"confirming", liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.Phase = "confirming" }), "live", ""},
		{"past its lease", liveEntry(0, 0, expired), "live", "worker 0 (api): A connected node's lease has"},
		{"clock ahead", liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.ReportedClock += 600 }), "live",
			"The clock is more than 500 ms off"},
		{"clock behind", liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.ReportedClock -= 600 }), "live",
			"The clock is more than 500 ms off"},
		{"clock within", liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.ReportedClock += 490 }), "live", ""},
		{"clock uncertain", liveEntry(0, 0,
			func(e *coordinator.Entry) { e.Slot.ReportedClock -= 600; e.Slot.RTTMs = 1200 }), "live", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := judged("prod", exampleCluster(), []coordinator.Entry{row.entry}, local(t0))
			state := UnknownState
			if len(r.Workers) > 0 {
				state = r.Workers[0].State
			}
			if state != row.want {
				t.Errorf("state %q, want %q", state, row.want)
			}
			got := joined(r.Summary.Problems)
			if row.wrong == "" && got != "" || !strings.Contains(got, row.wrong) {
				t.Errorf("problems %q, want %q", got, row.wrong)
			}
			if r.Summary.Degraded != (row.wrong != "") {
				t.Errorf("degraded: %v", r.Summary.Degraded)
			}
			s := r.Summary
			if sum := s.Live + s.Disconnected + s.Stopped + s.Releasing + s.RecordMissing + s.Free; sum != s.Slots {
				t.Errorf("the states add up to %d of %d", sum, s.Slots)
			}
		})
	}
}

func TestPresentTime(t *testing.T) {
	for _, row := range []struct {
		name    string
		entries []coordinator.Entry
		local   int64
		now     int64
		suspect int64
	}{
		{"no records", nil, t0, t0, 0},
		{"between heartbeats", []coordinator.Entry{liveEntry(0, 2000)}, t0, t0, 0},
		{"behind", []coordinator.Entry{liveEntry(0, 0)}, t0 - 5000, t0, 0},
		{"just within", []coordinator.Entry{liveEntry(0, 0)}, t0 + 10_000, t0 + 10_000, 0},
		{"ahead", []coordinator.Entry{liveEntry(0, 0)}, t0 + 10_001, t0, 10_001},
		{"nobody live", []coordinator.Entry{liveEntry(0, 0, dead)}, t0 + hour, t0 + hour, 0},
		{"nobody live, behind", []coordinator.Entry{liveEntry(0, 0, dead)}, t0 - hour, t0, 0},
	} {
		now, suspect := presentTime(row.entries, row.local)
		if now != row.now || suspect != row.suspect {
			t.Errorf("%s: %d %v, want %d %v", row.name, now-t0, suspect, row.now-t0, row.suspect)
		}
	}
}

// An offset is known only of a live worker with a fresh report under the present leader.
func TestClockOffset(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*coordinator.Entry)
		want   bool
	}{
		"live":               {func(*coordinator.Entry) {}, true},
		"dead":               {dead, false},
		"absent":             {func(e *coordinator.Entry) { e.Missing = true }, false},
		"stopped":            {func(e *coordinator.Entry) { e.Slot.Stopped = true }, false},
		"released":           {func(e *coordinator.Entry) { e.Slot.Released = true }, false},
		"not reported":       {func(e *coordinator.Entry) { e.Slot.ReportedClock = 0 }, false},
		"old":                {func(e *coordinator.Entry) { e.Stat.Mtime -= 10_001 }, false},
		"of a former leader": {func(e *coordinator.Entry) { e.Stat.Mzxid = 7 }, false},
	} {
		e := liveEntry(0, 0)
		row.change(&e)
		if offset, known := ClockOffset(e, t0, liveEntry(0, 0).Stat.Epoch()); known != row.want ||
			known && offset.Ahead != time.Millisecond {
			t.Errorf("%s: %v, %v", name, offset, known)
		}
	}
}
