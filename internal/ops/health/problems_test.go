package health

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
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
		{"frozen", frozen, nil, t0, "Registration is frozen until 2026-11-20T18:46:49Z, because ZooKeeper lost data"},
		{"freeze over", thawed, nil, t0, ""},
		{"5 % free", small, many(19), t0, ""},
		{"none free", small, many(20), t0, "workers are free: 0 of 20"},
		{"many disconnected", exampleCluster(), many(7, dead), t0, "7 workers (0, 1, 2, 3, 4 and 2 more): The node"},
		{"leader's clock", exampleCluster(), many(3, ahead), t0, "3 workers (0, 1, 2): The clock is more than 500 ms"},
		{"one clock of three", exampleCluster(), append(many(2), liveEntry(2, 0, ahead)), t0,
			"worker 2 (api): The clock is more than 500 ms off, compared with that of ZooKeeper's leader. Clients " +
				"notice nothing. "},
		{"one is silent", exampleCluster(), append(many(2), liveEntry(2, 10_001)), t0,
			"worker 2 (api): The node is connected, and has missed three heartbeats"},
		{"one is a little late", exampleCluster(), append(many(2), liveEntry(2, 10_000)), t0, ""},
		{"this clock is ahead", exampleCluster(), many(2), t0 + hour, "The newest report is 1h0m old by this"},
		{"this clock is behind", exampleCluster(), many(2), t0 - hour, ""},
		{"all is quiet, and long ago", exampleCluster(), many(2, stopped), t0 + hour/2, "No node serves"},
	} {
		t.Run(row.name, func(t *testing.T) {
			found := judged("prod", row.cluster, row.entries, local(row.now)).Summary.Problems
			if found == nil {
				t.Error("JSON needs a list")
			}
			got := joined(found)
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
		{"confirming", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Phase: "confirming", Cause: "confirming"}),
			""},
		{"refusing", []coordinator.Entry{liveEntry(0, 0)}, refusing("clock-wrong"), "worker 0 (api) refuses to serve"},
		{"two refusing", []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, refusing("reserved-bound-reached"),
			"2 workers (0, 1) refuse to serve (reserved-bound-reached): The state directory cannot be written, or " +
				"the process stood still. Clients get no IDs. If the process stood still, wait"},
		{"for another reason", []coordinator.Entry{liveEntry(0, 0)}, refusing("solar-flare"),
			"refuses to serve (solar-flare): The reply to READY and the log say why. Clients get no IDs. See docs"},
		{"draining", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Phase: "serving", Cause: "draining"}),
			"worker 0 (api) is not ready (draining): The node drains: it still answers open connections, and stops soon."},
		{"as it reported", []coordinator.Entry{liveEntry(0, 0,
			func(e *coordinator.Entry) { e.Slot.Phase = "refusing" })}, nil,
			"worker 0 (api): The node reported that it refuses to serve. Clients get no IDs. Its READY reply and its log"},
		{"no more", []coordinator.Entry{liveEntry(0, 0, func(e *coordinator.Entry) { e.Slot.Phase = "refusing" })},
			says(Answer{Ready: true, Phase: "serving"}), ""},
		{"not shown yet", []coordinator.Entry{liveEntry(0, 0, dead)}, says(Answer{Ready: true, ZooKeeperOK: true}),
			"worker 0 (api): ZooKeeper does not show the node as live yet, but the node reaches it. "},
		{"restarted", []coordinator.Entry{liveEntry(0, 0, dead)},
			says(Answer{Phase: "confirming", Cause: "confirming", ZooKeeperOK: true}), ""},
		{"cut off", []coordinator.Entry{liveEntry(0, 0, dead)}, says(Answer{Ready: true}),
			"worker 0 (api): The node has had no answer from ZooKeeper. "},
		{"disk", []coordinator.Entry{liveEntry(0, 0)},
			says(Answer{Ready: true, Degraded: []string{"state-directory"}}), "worker 0 (api): The node cannot write " +
				"to its state directory. Clients may get errors from"},
		{"leap", []coordinator.Entry{liveEntry(0, 0)}, says(Answer{Ready: true, Degraded: []string{"clock-leap"}}),
			"worker 0 (api): The machine's clock leapt ahead, unconfirmed by ZooKeeper and peers. IDs do not follow " +
				"the leap. "},
	} {
		d := DraftOf("prod", exampleCluster(), row.entry, local(t0))
		for i := range d.Workers {
			if row.says != nil {
				row.says(&d.Workers[i])
			}
		}
		r := d.Complete()
		if got := joined(r.Summary.Problems); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// If all nodes drain, their clients still get IDs on open connections. A node that refuses gives none.
func TestNodesThatDrainGiveIDs(t *testing.T) {
	for _, row := range []struct {
		name   string
		causes []node.Cause
		want   bool
	}{
		{"all drain", []node.Cause{node.CauseDraining, node.CauseDraining}, false},
		{"one drains, and one refuses", []node.Cause{node.CauseDraining, node.CauseClockWrong}, false},
		{"one stops, and one refuses", []node.Cause{node.CauseStopping, node.CauseClockWrong}, true},
	} {
		phases := map[node.Cause]node.Phase{node.CauseDraining: node.Serving, node.CauseStopping: node.Stopping}
		d := DraftOf("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, local(t0))
		for i, cause := range row.causes {
			d.Workers[i].Says = &Answer{Cause: cause, Phase: cmp.Or(phases[cause], node.Refusing)}
		}
		r := d.Complete()
		text := joined(r.Summary.Problems)
		if got := slices.Contains(causes(r), "no-node-serves"); got != row.want || strings.Contains(text, noIDs) != row.want {
			t.Errorf("%s: %q", row.name, text)
		}
	}
}

// Nodes that have no worker yet have no number to name them by.
func TestNodesWithoutAWorkerGoByTheirNames(t *testing.T) {
	starts := func(worker int, name string) WorkerReport {
		return WorkerReport{Worker: worker, Name: name, State: Live,
			Says: &Answer{Cause: node.CauseNoWorkerYet, ZooKeeperOK: true}}
	}
	for want, nodes := range map[string][]WorkerReport{
		"node ids-1 refuses to serve (no-worker-yet)":           {starts(-1, "ids-1")},
		"2 nodes (ids-1, ids-2) refuse to serve (no-worker":     {starts(-1, "ids-1"), starts(-1, "ids-2")},
		"2 nodes (ids-1, ids\ufffd3) refuse to serve (no-worke": {starts(-1, "ids-1"), starts(3, "ids\n3")},
	} {
		if got := joined(assessed("", nodes, local(t0)).Summary.Problems); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The verdict says when the first lease expires of those that nodes cannot renew. Other nodes renew theirs.
func TestVerdictHasTheFirstLeaseThatExpires(t *testing.T) {
	lease := func(state WorkerState, worker int, ready bool, seconds int64) WorkerReport {
		return WorkerReport{Worker: worker, State: state,
			Says: &Answer{Ready: ready, ZooKeeperOK: state == Live, LeaseLeftMs: new(1000 * seconds)}}
	}
	workers := []WorkerReport{lease(Live, 0, true, 20), lease(Disconnected, 1, true, 300),
		lease(Disconnected, 2, true, 240), lease(Disconnected, 3, false, 5)}
	read := Draft{Source: SourceZooKeeper, Workers: workers}.Complete()
	renewed := Draft{Source: SourceZooKeeper, Workers: []WorkerReport{lease(Live, 0, true, 20)}}.Complete()
	for want, r := range map[string]Report{
		"2 problems: 3 of 4 nodes serve, the first lease expires in 4m0s": assessed("", workers, local(t0)),
		"1 problem: 3 of 4 nodes serve, the first lease expires in 4m0s":  read,
		"2 problems: 2 nodes serve, the first lease expires in 4m0s":      assessed("refused", workers[1:3], local(t0)),
		"healthy: 1 node serves, ZooKeeper could fail for 20s":            renewed,
	} {
		if got := r.Verdict(); got != want {
			t.Errorf("%q, want %q: %+v", got, want, r.Summary.Problems)
		}
	}
}

// A development node has no ZooKeeper. It does not mean that another node can reach the one of --zk.
func TestDevelopmentNodeReachesNoZooKeeper(t *testing.T) {
	d := Draft{Source: SourceNodes, ZooKeeperError: "connection refused", Workers: []WorkerReport{
		{Outcome: Answered, Says: &Answer{Ready: true, ZooKeeperOK: true, Dev: true}},
	}}
	r := d.Complete()
	if p := r.Summary.Problems; len(p) != 1 || p[0].Cause != DevelopmentProblem.Cause {
		t.Errorf("%q", joined(p))
	}
}

// A node that does not answer is a problem. A node that denies access, or that cannot be reached from here, is none
// while its worker is live.
func TestNodeWithoutAnswerIsAProblem(t *testing.T) {
	for asked, want := range map[Outcome][2]string{ // of a live and of a disconnected worker
		NoAnswer: {"no-answer", "no-node-serves down"}, TimedOut: {"no-answer", "no-node-serves down"},
		AnotherNode: {"another-node", "replaced"},
		"":          {"", "disconnected"}, AccessDenied: {"", "disconnected"}, NoAddress: {"", "disconnected"},
	} {
		for i, entry := range []coordinator.Entry{liveEntry(0, 0), liveEntry(0, 0, dead)} {
			d := DraftOf("prod", exampleCluster(), []coordinator.Entry{entry}, local(t0))
			d.Workers[0].Outcome = asked
			r := d.Complete()
			if got := strings.Join(causes(r), " "); got != want[i] {
				t.Errorf("asked %q, %s: %q", asked, r.Workers[0].State, got)
			}
		}
	}
	away := WorkerReport{State: Disconnected, Says: &Answer{Ready: true, LeaseLeftMs: new(int64(60000))}}
	near := WorkerReport{State: Live, Says: &Answer{Ready: true, ZooKeeperOK: true}}
	for want, w := range map[string]WorkerReport{
		"ZooKeeper cannot be reached, and the next lease expires in 1m0s.": away,
		"ZooKeeper cannot be reached from here, but a node can reach it. ": near,
	} {
		if got := joined(assessed("refused", []WorkerReport{w},
			local(t0)).Summary.Problems); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for asked, want := range map[Outcome]string{AccessDenied: "access-denied", TimedOut: "silent"} {
		r := assessed("", []WorkerReport{{Worker: -1, Address: "a:1", Outcome: asked, Why: "-NO"}}, local(t0))
		if got := r.Summary.Problems; len(got) != 1 || got[0].Cause != want ||
			!strings.HasSuffix(got[0].Text, " at a:1 (-NO)") {
			t.Errorf("%s: %+v", asked, got)
		}
	}
	const other = "No node of this cluster answers at a:1 (-NO). Clients get IDs from other nodes only. Correct --addr " +
		"or --cluster."
	r := assessed("", []WorkerReport{{Worker: -1, Address: "a:1", Outcome: AnotherNode, Why: "-NO"}}, local(t0))
	if got := joined(r.Summary.Problems); got != other || r.Summary.Problems[0].Cause != "silent" {
		t.Errorf("%q, want %q", got, other)
	}
}

func causes(r Report) (out []string) {
	for _, p := range r.Summary.Problems {
		out = append(out, p.Cause)
	}
	return out
}

// Every trouble that a node may report is a problem of status, unless status has it from records.
func TestStatusReportsEveryTrouble(t *testing.T) {
	for _, word := range node.Troubles() {
		d := DraftOf("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0)}, local(t0))
		d.Workers[0].Says = &Answer{Ready: true, Degraded: []string{word}}
		r := d.Complete()
		recorded := []string{node.TroubleZooKeeper, node.TroubleOffset, node.TroubleFrozen}
		if slices.Contains(recorded, word) == r.Summary.Degraded {
			t.Errorf("%s: %q", word, r.Summary.Problems)
		}
		asked := WorkerReport{State: Live, Says: &Answer{Ready: true, Degraded: []string{word}, ZooKeeperOK: true}}
		switch word {
		case node.TroubleZooKeeper:
			asked.State, asked.Says.ZooKeeperOK = Disconnected, false
		case node.TroubleOffset:
			asked.ClockOffsetMs = new(600.0) // said twice, reported once
		}
		if got := causes(assessed("", []WorkerReport{asked}, local(t0))); !slices.Equal(got, []string{word}) {
			t.Errorf("%s of an asked node: %q", word, got)
		}
	}
}

// Each problem has a cause, and the worst comes first. A cause of another release comes behind the critical ones that
// are known.
func TestCausesOfOtherReleasesComeBehindKnownOnes(t *testing.T) {
	refusesUnheard := func(e *coordinator.Entry) { e.Slot.Phase = "refusing" }
	d := DraftOf("prod", exampleCluster(), []coordinator.Entry{
		liveEntry(0, 0), liveEntry(1, 0, refusesUnheard), liveEntry(2, 0),
	}, local(t0))
	d.Workers[0].Says = &Answer{Phase: "refusing", Cause: "solar-flare", Degraded: []string{node.TroubleLeap}}
	d.Workers[1].Outcome = AccessDenied
	d.Workers[2].Says = &Answer{Phase: "refusing"}
	r := d.Complete()
	if got := strings.Join(causes(r), " "); got != "no-node-serves refusing solar-flare clock-leap" {
		t.Error(got)
	}
}
