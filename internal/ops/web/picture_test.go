package web

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/lineproto"
)

// hostile is a name that somebody wrote to ZooKeeper.
const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">"'`

// picture returns a process and a cluster with workers in every state.
func picture(total, held int) Config {
	began := time.Now()
	events := new(Events)
	events.Accept("flaked.node", hclog.Info, "serving", "worker", 3, "term", 7, "lease_left_s", 86400)
	events.Accept("flaked.node", hclog.Warn, "clock offset is large", "worst_offset_ms", 3600000, "against", 1)
	events.Accept(hostile, hclog.Error, hostile, hostile, hostile)
	name := func(w int) string {
		if w == 4 {
			return hostile
		}
		return fmt.Sprintf("ids-%d", w)
	}
	return Config{
		Events: events,
		About: About{Version: "1.2.3", Name: "ids-3", Host: "h3", PID: 42,
			StartedMs: began.Add(-time.Hour).UnixMilli()},
		Node: func() node.Snapshot {
			now := time.Now().UnixMilli()
			return node.Snapshot{
				Name: "ids-3", Worker: new(3), Term: 7, Phase: node.Serving, Ready: true, Confirmed: true, NowMs: now,
				LeaseLeftMs: new(int64(86_000_000)), LeaseEndsMs: new(now + 86_000_000),
				ReservedLeftMs: new(int64(2_731)),
				Clock: node.ClockSnapshot{OffsetMs: new(0.5), UncertaintyMs: new(2.0), WorstMs: new(1.5),
					WorstUncertaintyMs: new(2.0), Voters: 5},
				ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)),
					HeartbeatMs: 3000},
				Disk: node.DiskSnapshot{OK: true},
				Cluster: node.ClusterSnapshot{
					Name: "orders", UUID: "624812a4",
					Layout: "time=41@1ms,worker=10,sequence=12,epoch=1288834974657", Slots: total,
					EpochEndsMs: new(int64(3487858230209)),
				},
			}
		},
		Counters: func() lineproto.Counters { return busy(time.Since(began)) },
		Slots: func(context.Context) (view.Report, error) {
			s := view.Report{Summary: view.Summary{Slots: total, Used: held, Free: total - held,
				Problems: []view.Problem{{Severity: view.Critical, Text: "worker 1 (ids-1) is disconnected: its node " +
					"is not connected to ZooKeeper", Advice: "Start the node again, or restore its connection to " +
					"ZooKeeper."}}}}
			phase := time.Since(began).Seconds()
			for w := range held {
				one := view.WorkerReport{
					Worker: w, Name: name(w), Node: "18b34979-0000-4000-8000-000000000000", Host: "h",
					Address: fmt.Sprintf("10.0.%d.%d:7609", w/250, w%250),
					PID:     42, Version: "1.2.3", State: "live", Phase: "serving", Term: int64(w%5 + 1),
					Confirmed: true, HeartbeatMs: 3000,
					ClockOffsetMs: new(3 * math.Sin(phase/3+float64(w))), ClockUncertaintyMs: new(0.5),
					LeaseLeftMs: new(int64(86_000_000)), ReportAgeMs: new(int64(1200)),
				}
				troubled(&one, &s.Summary)
				s.Workers = append(s.Workers, one)
			}
			s.Summary.Live = held - s.Summary.Disconnected - s.Summary.Stopped - s.Summary.Releasing -
				s.Summary.RecordMissing
			s.Summary.Held = s.Summary.Live + s.Summary.Disconnected + s.Summary.Stopped
			return s, nil
		},
	}
}

// troubled gives some workers a trouble, and counts it.
func troubled(one *view.WorkerReport, sum *view.Summary) {
	w := one.Worker
	switch {
	case w == 2:
		one.ClockOffsetMs, one.Phase = new(-3_600_000.0), "refusing"
	case w == 5:
		one.ReportAgeMs = new(int64(4100))
	case w%7 == 1:
		one.State, one.ClockOffsetMs = view.Disconnected, nil
		sum.Disconnected++
	case w%11 == 6:
		one.State, one.ClockOffsetMs = view.Stopped, nil
		sum.Stopped++
	case w%13 == 8:
		one.State, one.ClockOffsetMs = view.Releasing, nil
		sum.Releasing++
	case w%17 == 9:
		one.State, one.ClockOffsetMs = view.RecordMissing, nil
		sum.RecordMissing++
	}
}

// busy returns the counters of a node after d, under a load that rises and falls.
func busy(d time.Duration) lineproto.Counters {
	n := 40_000 * int64(1e6+60*d.Seconds()+1500*math.Sin(d.Minutes()))
	return lineproto.Counters{
		Durations: lineproto.Histogram{Bounds: []float64{64e-6, 128e-6, 256e-6}, N: []int64{n * 90, n * 9, n, 0}},
		ConnsOpen: 12, ConnsTotal: 40, IDs: n / 10,
		Requests: []lineproto.RequestCount{{Command: "GET", Result: "OK", N: n / 100}},
	}
}
