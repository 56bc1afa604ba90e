package web

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
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

func diskFull(w *node.Snapshot) {
	directoryGone(w)
	w.Disk.Limits = true
}

func directoryGone(w *node.Snapshot) { w.Disk.OK, w.Degraded = false, []string{node.TroubleDisk} }

var well = func(*node.Snapshot) {}
var noWorker = func(w *node.Snapshot) {
	w.Worker, w.LeaseLeftMs, w.LeaseEndsMs, w.ReservedLeftMs = nil, nil, nil, nil
}

// The first screen says whether this node serves, for how long, and what is wrong in the rest of the cluster.
func TestFirstScreenStatesTimeLeft(t *testing.T) {
	const noTime = "bad|Not serving IDs|No time left: clients get no IDs from this node||"
	const stops = "warn|Serving IDs|%s left: the node stops serving at %s UTC unless it %s||"
	reports := func(of ...[]int) (c seen) {
		for _, workers := range of {
			c.Summary.Problems = append(c.Summary.Problems,
				health.Problem{Text: fmt.Sprint(workers, " refuse"), Clients: "C.", Advice: "A.", Workers: workers})
		}
		return c
	}
	away := reports([]int{2})
	away.err = errors.New("connection refused")
	for _, row := range []struct {
		name string
		v    pageData
		c    seen
		want string // tone, serves, left, aside, of the cluster; ...
	}{
		{"well", pageData{Own: own(well)}, seen{},
			"good|Serving IDs|No time limit|If ZooKeeper fails now, this node serves for another 15m3s.|"},
		{"ZooKeeper is down", pageData{Own: own(cutOff), Stale: true, ReadAt: "10:31:36"}, away,
			fmt.Sprintf(stops, "15m3s", "10:47:08", "reaches ZooKeeper") + "10:31:36: [2] refuse. C. A."},
		{"a heartbeat is late", pageData{Own: own(func(w *node.Snapshot) { w.ZooKeeper.HeartbeatAgeMs = new(int64(3600)) })},
			seen{}, fmt.Sprintf(stops, "15m3s", "10:47:08", "reaches ZooKeeper")},
		{"only the cluster cannot be read", pageData{Own: own(well), Stale: true, ReadAt: "10:31:36"},
			seen{err: errors.New("slow")},
			"warn|Serving IDs|No time limit|If ZooKeeper fails now, this node serves for another 15m3s.|10:31:36: The " +
				"cluster could not be read from ZooKeeper since 10:31:36 UTC. " + health.UnreadProblem("").Clients + " " + health.UnreadProblem("").Advice},
		{"the disk is full", pageData{Own: own(diskFull)}, seen{},
			fmt.Sprintf(stops, "2.5s", "10:32:07", "can write its state directory again")},
		{"the state directory is gone", pageData{Own: own(directoryGone)}, seen{},
			"warn|Serving IDs|No time limit|If ZooKeeper fails now, this node serves for another 15m3s.|"},
		{"disk and ZooKeeper fail", pageData{Own: own(func(w *node.Snapshot) {
			diskFull(w)
			cutOff(w)
			w.LeaseLeftMs = new(int64(1000))
		})}, seen{}, fmt.Sprintf(stops, "1.0s", "10:32:06", "reaches ZooKeeper")},
		{"the lease is over", pageData{Own: refuses("FENCED", "lease-expired", cutOff)}, seen{}, noTime},
		{"it refuses, and the cluster says so, too", pageData{Own: refuses("CLOCK", "clock-wrong", well)},
			reports([]int{7}, []int{71}, []int{7, 71}), noTime + "[71] refuse. C. A.; [7 71] refuse. C. A."},
		{"it has just started", pageData{Own: refuses("NOTREADY", "no-worker-yet", noWorker)}, seen{},
			"warn|Starting|The node starts serving by itself, normally within seconds||"},
		{"it cannot start", pageData{Own: refuses("NOTREADY", "zookeeper-unreachable", noWorker)}, seen{}, noTime},
		{"it drains", pageData{Own: refuses("NOTREADY", "draining", well)}, seen{},
			"warn|Draining|Open connections get IDs until the node stops||"},
		{"a development node", pageData{Dev: true, Own: own(well)}, seen{}, "warn|Serving IDs|No time limit||"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.v.Status.Ready = row.v.Own.Ready
			row.v.Status.Problems = problemsOf(row.v.Own.OwnWorker, nil, row.v.Dev)
			f := firstOf(row.v, row.c)
			var all []string
			for _, problem := range f.Cluster {
				all = append(all, problem.String())
			}
			text := strings.Join(all, "; ")
			if f.ReadAt != "" {
				text = f.ReadAt + ": " + text
			}
			if got := strings.Join([]string{f.Tone, f.Serves, f.Left, f.Aside, text}, "|"); got != row.want {
				t.Errorf("%s\nwant\n%s", got, row.want)
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
		{"its disk fails", own(diskFull), "15m3s", true},
		{"its directory is gone", own(directoryGone), "15m3s", false},
		{"it refuses", refuses("CLOCK", "clock-wrong", diskFull), "–", false},
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
		name      string
		phase     node.Phase
		own       ownView
		trouble   bool
		leaseLeft int64 // 0 for none
	}{
		{"serves", "serving", own(well), false, 903_000},
		{"refuses, and ZooKeeper has the state before", "serving",
			refuses("CLOCK", "clock-behind", well), true, 0},
		{"serves again, and ZooKeeper has the state before", "refusing", own(well), false, 903_000},
		{"a wrong clock", "serving", own(clockWrong), true, 903_000},
		{"another node's, by ZooKeeper", "refusing", ownView{}, true, 0},
		{"another node's that serves", "serving", refuses("CLOCK", "clock-behind",
			func(w *node.Snapshot) { w.Worker = new(8) }), false, 60_000},
	} {
		v := describeSlot(health.WorkerReport{Worker: 7, State: "live", Phase: row.phase,
			LeaseLeftMs: new(int64(60_000))}, row.own, 0, false)
		left := int64(0)
		if v.LeaseLeftMs != nil {
			left = *v.LeaseLeftMs
		}
		if got := v.Trouble(); got != row.trouble || left != row.leaseLeft {
			t.Errorf("%s: trouble %v, lease left %v, want %v, %v", row.name, got, left, row.trouble, row.leaseLeft)
		}
	}
}

// Ages grow and times left shrink by the time since the reading.
func TestAgesGrowSinceTheReading(t *testing.T) {
	w := health.WorkerReport{Worker: 2, State: "live", HeartbeatMs: 3000, ReportAgeMs: new(int64(927)),
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
	cfg := picture()
	slots := cfg.Slots
	cfg.Slots = func(ctx context.Context) (health.Report, error) {
		if readings++; readings > 1 {
			return health.Report{}, errors.New("ZooKeeper cannot be reached")
		}
		return slots(ctx)
	}
	addr, _ := start(t, cfg)
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, _, body := do(t, "GET", "http://"+addr+"/")
		switch stale := strings.Count(body, "ZooKeeper has not been read since"); {
		case stale == 1 && strings.Contains(body, "could not be read from ZooKeeper since ") &&
			strings.Contains(body, "</i> was live") && !strings.Contains(body, "</i> live"):
			return
		case time.Now().After(deadline):
			t.Fatalf("%d times:\n%s", stale, body)
		}
	}
}
