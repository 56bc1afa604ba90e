package clusterview

import (
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/node"
)

func joined(problems []Problem) string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, " ")
}

func TestClusterProblems(t *testing.T) {
	many := func(n int, change ...func(*coordinator.Entry)) (entries []coordinator.Entry) {
		for w := range n {
			entries = append(entries, liveEntry(w, 0, change...))
		}
		return entries
	}
	frozen := exampleCluster()
	frozen.FrozenUntil = t0 + hour
	thawed := exampleCluster()
	thawed.FrozenUntil = t0
	small := exampleCluster()
	small.Slots = 20
	ahead := func(e *coordinator.Entry) { e.Slot.ReportedClock += 9000 }
	for _, row := range []struct {
		name    string
		cluster coordinator.Cluster
		entries []coordinator.Entry
		now     int64
		want    string
	}{
		{"nothing there", exampleCluster(), nil, t0, ""},
		{"frozen", frozen, nil, t0, "registration is frozen until 2026-11-20T18:46:49Z"},
		{"freeze over", thawed, nil, t0, ""},
		{"5 % free", small, many(19), t0, ""},
		{"none free", small, many(20), t0, "0 of 20 workers are free"},
		{"many disconnected", exampleCluster(), many(7, dead), t0, "7 workers (0, 1, 2, 3, 4, ...) are disconnected"},
		{"leader's clock", exampleCluster(), many(3, ahead), t0, "3 workers (0, 1, 2) have clocks more than 500 ms off that of ZooKeeper's leader. Most clocks are off, so check the clock of ZooKeeper's leader first"},
		{"one clock of three", exampleCluster(), append(many(2), liveEntry(2, 0, ahead)), t0, "worker 2 (api) has a clock more than 500 ms off that of ZooKeeper's leader. Check its time"},
		{"one is silent", exampleCluster(), append(many(2), liveEntry(2, 10_001)), t0, "worker 2 (api) is connected and has missed three heartbeats"},
		{"one is a little late", exampleCluster(), append(many(2), liveEntry(2, 10_000)), t0, ""},
		{"this clock is ahead", exampleCluster(), many(2), t0 + hour, "the newest report is 1h0m old by this machine's clock"},
		{"this clock is behind", exampleCluster(), many(2), t0 - hour, ""},
		{"all is quiet, and long ago", exampleCluster(), many(2, stopped), t0 + hour/2, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := joined(judged("prod", row.cluster, row.entries, local(row.now)).Summary.Problems)
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// A node's own answer counts more than its record.
func TestNodeAnswersDecideProblems(t *testing.T) {
	says := func(a Answer) func(*WorkerReport) {
		return func(w *WorkerReport) { w.Says = &a }
	}
	refusing := func(cause node.Cause) func(*WorkerReport) {
		return says(Answer{Phase: "refusing", Cause: cause})
	}
	for _, row := range []struct {
		name  string
		entry []coordinator.Entry
		says  func(*WorkerReport)
		want  string
	}{
		{"ready", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Ready: true}), ""},
		{"confirming", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Phase: "confirming", Cause: "confirming"}), ""},
		{"refusing", []coordinator.Entry{liveEntry(0, 0)}, refusing("clock-wrong"), "worker 0 (api) refuses to serve (clock-wrong): The machine's clock is wrong. Check with chronyc tracking, then set the clock right. The node then serves again by itself. Do not restart it."},
		{"two refusing", []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, refusing("reserved-bound-reached"), "2 workers (0, 1) refuse to serve (reserved-bound-reached): The node cannot write its state directory. Free space on the disk of --state-dir"},
		{"for another reason", []coordinator.Entry{liveEntry(0, 0)}, refusing("solar-flare"), "refuses to serve (solar-flare). See docs/troubleshooting.md."},
		{"as it reported", []coordinator.Entry{liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.State = "refusing" })}, nil, "refuses to serve. Its READY and its log say why"},
		{"no more", []coordinator.Entry{liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.State = "refusing" })}, says(Answer{Ready: true, Phase: "serving"}), ""},
		{"not shown yet", []coordinator.Entry{liveEntry(0, 0, dead)}, says(Answer{Ready: true, ZooKeeperOK: true}), "is not shown as live in ZooKeeper yet, but its node answers and reaches it. Wait for the next"},
		{"restarted", []coordinator.Entry{liveEntry(0, 0, dead)}, says(Answer{Phase: "confirming", Cause: "confirming", ZooKeeperOK: true}), ""},
		{"cut off", []coordinator.Entry{liveEntry(0, 0, dead)}, says(Answer{Ready: true}), "is disconnected, but its node answers: it is disconnected from ZooKeeper. Restore the connection"},
		{"disk", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Ready: true, Degraded: []string{"state-directory"}}), "worker 0 (api) cannot write to the state directory. Check its disk"},
		{"leap", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Ready: true, Degraded: []string{"clock-leap"}}), "leapt ahead, unconfirmed by ZooKeeper and peers. IDs do not follow the leap. Check"},
	} {
		r := Assess("prod", exampleCluster(), row.entry, local(t0))
		for i := range r.Workers {
			if row.says != nil {
				row.says(&r.Workers[i])
			}
		}
		r.Judge()
		if got := joined(r.Summary.Problems); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// A node that does not answer is a problem while its worker is live. A node that denies access, or
// that cannot be reached from here, is none.
func TestNodeWithoutAnswerIsAProblem(t *testing.T) {
	for asked, want := range map[string]string{
		NoAnswer: "its node does not answer", TimedOut: "its node does not answer", AnotherNode: "another node answers",
		"": "", Answered: "", AccessDenied: "", NoAddress: "",
	} {
		for _, live := range []bool{true, false} {
			var change []func(*coordinator.Entry)
			if !live {
				change = append(change, dead)
			}
			r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0, change...)}, local(t0))
			r.Workers[0].Asked = asked
			r.Judge()
			got := joined(r.Summary.Problems)
			want := want
			switch {
			case !live && r.Workers[0].unanswered():
				want = "worker 0 (api) is down or cut off"
			case !live && asked == AnotherNode:
			case !live:
				want = ""
			}
			if found := strings.Contains(got, "answer"); found != (want != "") || !strings.Contains(got, want) {
				t.Errorf("asked %q, live %v: %q", asked, live, got)
			}
		}
	}
}

// Critical problems come before warnings.
func TestWorstProblemsFirst(t *testing.T) {
	r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.ReportedClock += 5000 }), liveEntry(1, 0, dead), liveEntry(2, 0)}, local(t0))
	r.Workers[2].Says = &Answer{Phase: "refusing", Cause: node.CauseReservedBound}
	r.Judge()
	var got []string
	for _, p := range r.Summary.Problems {
		got = append(got, string(p.Severity)+" "+p.Text)
	}
	want := []string{"critical worker 2 (api) refuses to serve (reserved-bound-reached): The node cannot write its state directory", "critical worker 1 (api) is disconnected: its node is not connected to ZooKeeper", "warning worker 0 (api) has a clock more than 500 ms off that of ZooKeeper's leader"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if p := problems(Report{Summary: Summary{Slots: 10, Free: 10}}); p == nil || len(p) > 0 {
		t.Errorf("%#v, want an empty list", p)
	}
}

// Every trouble that a node may report is a problem of status, unless status has it from elsewhere.
func TestStatusReportsEveryTrouble(t *testing.T) {
	elsewhere := map[string]string{
		node.TroubleZooKeeper: "a report that is missing, or a node that is disconnected",
		node.TroubleOffset:    "the node's own record",
		node.TroubleFrozen:    "the cluster's record",
	}
	for _, word := range node.Troubles() {
		r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0)}, local(t0))
		r.Workers[0].Says = &Answer{Ready: true, Degraded: []string{word}}
		r.Judge()
		if (elsewhere[word] == "") != r.Summary.Degraded {
			t.Errorf("%s: %q", word, r.Summary.Problems)
		}
	}
}

func TestReplacedNodeIsNotStartedAgain(t *testing.T) {
	r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0, dead)}, local(t0))
	r.Workers[0].Asked = AnotherNode
	r.Judge()
	if p := r.Summary.Problems; len(p) != 1 || p[0].Severity != Warning || !strings.Contains(p[0].Advice, "flaked workers release") {
		t.Errorf("%q", p)
	}
}
