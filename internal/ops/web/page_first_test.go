package web

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
)

// at0 is the time of the snapshots in this file, 10:32:05 UTC, in Unix milliseconds.
var at0 = time.Date(2026, 11, 22, 10, 32, 5, 0, time.UTC).UnixMilli()

// own returns a worker of this process that has no problem except those that change adds.
func own(change func(*node.Snapshot)) ownView {
	w := serving()
	w.NowMs, w.LeaseLeftMs, w.LeaseEndsMs = at0, new(int64(903_000)), new(at0+903_000)
	w.Cluster.ConfirmMs = 12_000
	change(&w)
	return describeOwn(w)
}

func refuses(code string, cause node.Cause, more func(*node.Snapshot)) ownView {
	return own(func(w *node.Snapshot) { w.Ready, w.Code, w.Cause = false, code, cause; more(w) })
}

// cutOff makes a worker one that ZooKeeper has not answered for 28 s.
func cutOff(w *node.Snapshot) {
	w.ZooKeeper.OK, w.ZooKeeper.HeartbeatAgeMs = false, new(int64(28_000))
	w.ZooKeeper.Error = "ZooKeeper cannot be reached: dial tcp 127.0.0.1:2181: connect: connection refused"
	w.Degraded = []string{node.TroubleZooKeeper}
}

var well = func(*node.Snapshot) {}
var noWorker = func(w *node.Snapshot) {
	w.Worker, w.LeaseLeftMs, w.LeaseEndsMs, w.ReservedLeftMs = nil, nil, nil, nil
}

var firstScreens = []struct {
	name string
	v    pageData
	c    seen
	want string // tone, serves, left; aside; what: do; ...
}{
	{name: "well", v: pageData{Own: own(well)},
		want: "good|Serving IDs|No time limit|If ZooKeeper fails now, this node serves for another 15m3s."},
	{name: "ZooKeeper is down", v: pageData{Own: own(cutOff), Stale: true, ReadAt: "10:31:36"},
		c: seen{err: errors.New("connection refused"),
			Report: view.Report{Summary: view.Summary{Problems: []view.Problem{{Text: "worker 2 (b) is " +
				"disconnected", Clients: "Clients wait.", Advice: "Start it."}}}}},
		want: "warn|Serving IDs|15m3s left: the node stops serving at 10:47:08 UTC unless it reaches ZooKeeper||" +
			"The node has had no answer from ZooKeeper since 10:31:37 UTC (connection refused).>Restore " +
			"ZooKeeper, or the network to it, before the lease expires. A restart does not help.|" +
			"10:31:36: worker 2 (b) is disconnected. Clients wait. Start it."},
	{name: "a heartbeat is " +
		"late", v: pageData{Own: own(func(w *node.Snapshot) { w.ZooKeeper.HeartbeatAgeMs = new(int64(3600)) })},
		want: "warn|Serving IDs|15m3s left: the node stops serving at 10:47:08 UTC unless it reaches ZooKeeper||" +
			"The node has had no answer from ZooKeeper since 10:32:01 UTC.>Restore ZooKeeper, or the network to " +
			"it, before the lease expires. A restart does not help."},
	{name: "only the cluster cannot be read", v: pageData{Own: own(well), Stale: true, ReadAt: "10:31:36"},
		c: seen{err: errors.New("slow")},
		want: "warn|Serving IDs|No time limit|If ZooKeeper fails now, this node serves for another " +
			"15m3s.|10:31:36: The cluster could not be read from ZooKeeper since 10:31:36 UTC. Clients " +
			"notice nothing. Check whether " +
			"ZooKeeper is slow or down."},
	{name: "the disk is full", v: pageData{Own: own(func(w *node.Snapshot) {
		w.Disk, w.Degraded = node.DiskSnapshot{Error: "write: no space left on device"}, []string{node.TroubleDisk}
	})},
		want: "warn|Serving IDs|2.5s left: the node stops serving at 10:32:07 UTC unless it can write its state " +
			"directory again||The node cannot write to its state directory (no space left).>Free space on " +
			"its disk, make it writable again, or repair it " +
			"at once. The reserved bound is only seconds ahead."},
	{name: "the lease is over", v: pageData{Own: refuses("FENCED", "lease-expired",
		func(w *node.Snapshot) { cutOff(w); w.LeaseLeftMs = new(int64(-5)) })},
		want: "bad|Not serving IDs|No time left: clients get no IDs from this node||" +
			"The lease has expired: no heartbeat succeeded for too long (connection refused).>Restore " +
			"ZooKeeper, or the network to it. The node then serves again by itself, after the confirming time. " +
			"Do not restart it."},
	{name: "the clock is wrong", v: pageData{Own: refuses("CLOCK", "clock-wrong", func(w *node.Snapshot) {
		w.Clock.Wrong, w.Clock.WorstMs, w.Clock.Against, w.Degraded = true, new(-3_599_000.0), 4,
			[]string{node.TroubleOffset}
	})}, c: seen{Report: view.Report{Summary: view.Summary{Problems: []view.Problem{{Text: "worker 7 (a) refuses " +
		"to serve", Clients: "Clients wait.", Advice: "See its log."},
		{Text: "worker 71 (b) refuses to serve", Clients: "Clients wait.", Advice: "See its log."}}}}},
		want: "bad|Not serving IDs|No time left: clients get no IDs from this node||" +
			"The machine's clock is wrong: 59m59s slow, compared with 4 of 5 other clocks.>Check with chronyc " +
			"tracking. If the clock is right now, wait. Else set it right. The node then serves again by itself. Do " +
			"not restart it. If " +
			"it is right, others are wrong: see CLOCK in flaked status.|" +
			"worker 71 (b) refuses to serve. Clients wait. See its log."},
	{name: "the clock went back", v: pageData{Own: refuses("CLOCK", "clock-behind",
		func(w *node.Snapshot) { w.Clock.BehindMs = 61_400 })},
		want: "bad|Not serving IDs|No time left: clients get no IDs from this node||" +
			"The machine's clock went back. It is behind the last ID by 1m1s.>Check with chronyc tracking. If " +
			"the clock is right now, wait. Else set it right. The node then serves again by itself. Do not restart it."},
	{name: "it has just started", v: pageData{Own: refuses("NOTREADY", "no-worker-yet", noWorker)},
		want: "warn|Starting|The node starts serving by itself, normally within seconds||" +
			"Starting: no worker acquired yet.>Wait. If this lasts, the node's log says why."},
	{name: "it cannot start", v: pageData{Own: refuses("NOTREADY", "zookeeper-unreachable",
		func(w *node.Snapshot) { noWorker(w); cutOff(w) })},
		want: "bad|Not serving IDs|No time left: clients get no IDs from this node||" +
			"ZooKeeper does not answer (connection refused), and the node cannot start without it.>Start " +
			"ZooKeeper, or correct --zk or the network to it. The node then starts by itself. It gives up " +
			"after a minute."},
	{name: "a development node", v: pageData{Dev: true, Own: own(well)},
		want: "warn|Serving IDs|No time limit||A development node (--dev) has no ZooKeeper and keeps nothing. " +
			"Others, or it after a restart, may repeat its IDs.>" +
			"Do not keep its IDs. For unique IDs, start the node with --zk."},
}

// The first screen says whether this node serves, for how long, what is wrong, and what to
// do.
func TestFirstScreenStatesProblemAndRemedy(t *testing.T) {
	for _, row := range firstScreens {
		t.Run(row.name, func(t *testing.T) {
			row.v.Ready = row.v.Own.Ready
			row.v.Status.Problems = problemsOf(row.v.Own.OwnWorker, nil, row.v.Dev)
			f := firstOf(row.v, row.c)
			got := []string{f.Tone, f.Serves, f.Left, f.Aside}
			for _, w := range f.Wrong {
				got = append(got, w.Text+".>"+w.Advice)
			}
			for _, text := range f.Cluster {
				if f.ReadAt != "" {
					text = f.ReadAt + ": " + text
				}
				got = append(got, text)
			}
			if text := strings.TrimRight(strings.Join(got, "|"), "|"); text != row.want {
				t.Errorf("%s\nwant\n%s", text, row.want)
			}
		})
	}
}

// A node that refuses shows no time left, except that a lease is over.
func TestNoTimeIsLeftWhileItRefuses(t *testing.T) {
	over := func(w *node.Snapshot) { w.LeaseLeftMs = new(int64(-5)) }
	for _, row := range []struct {
		name  string
		own   ownView
		lease string
		bound bool
	}{
		{"it serves", own(func(*node.Snapshot) {}), "15m3s", false},
		{"its disk fails", own(func(w *node.Snapshot) { w.Disk.OK = false }), "15m3s", true},
		{"it refuses", refuses("CLOCK", "clock-wrong", func(w *node.Snapshot) { w.Disk.OK = false }), "–", false},
		{"its lease is over", refuses("FENCED", "lease-expired", over), "expired", false},
	} {
		html := string(render("node", pageData{Own: row.own}))
		cell := regexp.MustCompile(`data-is="Lease left">(?:<b class="bad">)?([^ <]*)`).FindStringSubmatch(html)
		if cell == nil || cell[1] != row.lease {
			t.Errorf("%s: Lease left is %q, want %s", row.name, cell, row.lease)
		}
		if bound := strings.Contains(html, "reserved bound not renewed, 2.5s left"); bound != row.bound {
			t.Errorf("%s: it says that the bound is not renewed: %v", row.name, bound)
		}
	}
}

// For a worker of this process the page shows the process's state, not ZooKeeper's older one.
func TestPageShowsOwnStateBeforeZooKeeper(t *testing.T) {
	clockWrong := func(w *node.Snapshot) { w.Clock.Wrong = true }
	for _, row := range []struct {
		name, phase string
		own         ownView
		trouble     bool
		leaseLeft   bool
	}{
		{"serves", "serving", own(func(*node.Snapshot) {}), false, true},
		{"refuses, and ZooKeeper has the state before", "serving",
			refuses("CLOCK", "clock-behind", func(*node.Snapshot) {}), true, false},
		{"serves again, and ZooKeeper has the state before", "refusing", own(func(*node.Snapshot) {}), false, true},
		{"a wrong clock", "serving", own(clockWrong), true, true},
		{"another node's, by ZooKeeper", "refusing", ownView{}, true, false},
		{"another node's that serves", "serving", refuses("CLOCK", "clock-behind",
			func(w *node.Snapshot) { w.Worker = new(8) }), false, true},
	} {
		v := describeSlot(view.WorkerReport{Worker: 7, State: "live", Phase: row.phase,
			LeaseLeftMs: new(int64(60_000))}, row.own, 0, false)
		if got := v.Trouble(); got != row.trouble || (v.LeaseLeftMs != nil) != row.leaseLeft {
			t.Errorf("%s: trouble %v, lease left %v, want %v, %v", row.name, got, v.LeaseLeftMs, row.trouble,
				row.leaseLeft)
		}
	}
}

// Ages grow and times left shrink by the time since the reading.
func TestAgesGrowSinceTheReading(t *testing.T) {
	w := view.WorkerReport{Worker: 2, State: "live", HeartbeatMs: 3000, ReportAgeMs: new(int64(927)),
		LeaseLeftMs: new(int64(60_000)), ClockOffsetMs: new(1.0)}
	for _, row := range []struct {
		ago           time.Duration
		stale         bool
		report, lease int64
	}{
		{0, false, 927, 60_000},
		{3900 * time.Millisecond, false, 4827, 56_100}, // not late: it was not read since
		{41 * time.Second, true, 41_927, 19_000},
	} {
		v := describeSlot(w, ownView{}, row.ago, row.stale)
		if *v.ReportAgeMs != row.report || *v.LeaseLeftMs != row.lease || v.Late || v.Was != row.stale {
			t.Errorf("%v: %d %d %+v", row.ago, *v.ReportAgeMs, *v.LeaseLeftMs, v)
		}
	}
	if *w.ReportAgeMs != 927 {
		t.Error("the reading itself has changed")
	}
	w.ReportAgeMs = new(int64(3600))
	if v := describeSlot(w, ownView{}, 0, false); !v.Late {
		t.Error("a heartbeat that was late when it was read is not")
	}
}

// ZooKeeper fails after one reading. The page then says how old each part is.
func TestPageMarksStaleReading(t *testing.T) {
	readings := 0
	cfg := picture(32, 20)
	slots := cfg.Slots
	cfg.Slots = func(ctx context.Context) (view.Report, error) {
		if readings++; readings > 1 {
			return view.Report{}, errors.New("ZooKeeper cannot be reached")
		}
		return slots(ctx)
	}
	addr, _ := start(t, cfg)
	page := func() string { _, _, body := do(t, "GET", "http://"+addr+"/"); return body }
	if body := page(); strings.Contains(body, "was live") || strings.Contains(body, "has not been read") {
		t.Error("the first reading is not now")
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		body := page()
		if n := strings.Count(body, "ZooKeeper has not been read since"); n == 1 &&
			strings.Contains(body, "could not be read from ZooKeeper since ") {
			for _, now := range []string{"</i> live</td>"} {
				if was := strings.Replace(now, "live", "was live", 1); strings.Contains(body, now) ||
					!strings.Contains(body, was) {
					t.Errorf("want %q and no %q in\n%s", was, now, body)
				}
			}
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%d times:\n%s", n, body)
		}
	}
}
