package health

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
)

// Each cause of a refusal and each trouble has a row of its own, with something to do. Texts are headlines: the page
// adds the full stop.
func TestEveryCauseIsExplained(t *testing.T) {
	for _, cause := range node.Causes() {
		found := OwnWorker{node.Snapshot{Cause: cause, Code: "NOTREADY", Reason: "x"}}.Problems()
		if len(found) != 1 || found[0].Cause != string(cause) {
			t.Errorf("%s: %+v", cause, found)
		}
	}
	for _, trouble := range node.Troubles() {
		w := OwnWorker{node.Snapshot{Ready: true, Degraded: []string{trouble},
			FromCache: trouble == node.TroubleFromCache}}
		w.Clock.WorstMs = new(600.0)
		found := w.Problems()
		if trouble == node.TroubleFrozen && len(found) == 0 {
			continue // the cluster's problem
		}
		if len(found) != 1 || found[0].Cause != trouble {
			t.Errorf("%s: %+v", trouble, found)
		}
	}
	for i, r := range table {
		if place(r.cause) != i || strings.Contains(r.problem("").Text, "%s") || strings.HasSuffix(r.text, ".") ||
			!strings.HasSuffix(r.advice, ".") || i > 0 && r.severity == Critical && table[i-1].severity == Warning {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// A row that refers to a later variable would come after it.
func TestTableHasTheOrderOfItsFile(t *testing.T) {
	src, err := os.ReadFile("problem_table.go")
	if err != nil {
		t.Fatal(err)
	}
	rows, _, _ := strings.Cut(string(src), "\nfunc rowOf(")
	texts := regexp.MustCompile(`(?:\ttext: +|\trefusal\(node\.\w+, )"([^"]+)"`).FindAllStringSubmatch(rows, -1)
	if len(texts) != len(table) {
		t.Fatalf("the file has the texts of %d rows, and the table %d rows", len(texts), len(table))
	}
	for i, text := range texts {
		if !strings.HasPrefix(table[i].text, text[1]) {
			t.Errorf("row %d is %q, and the file has %q", i, table[i].text, text[1])
		}
	}
}

func TestHeartbeatIsLate(t *testing.T) {
	for _, row := range []struct {
		age, every int64
		want       bool
	}{{3000, 3000, false}, {3500, 3000, false}, {3501, 3000, true}, {9000, 0, false}} {
		if got := HeartbeatOverdue(row.age, row.every); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
	if (OwnWorker{}).HeartbeatLate() || (OwnWorker{}).CutOff() {
		t.Error("a worker before its first heartbeat is late")
	}
	if !slices.ContainsFunc(node.Troubles(),
		func(s string) bool { return OwnWorker{node.Snapshot{Degraded: []string{s}}}.CutOff() }) {
		t.Error("no trouble counts as cut off")
	}
}

// A node counts its lease by its own clock. The record counts by ZooKeeper's, which may be wrong.
func TestLeaseIsWhatTheNodeSays(t *testing.T) {
	d := DraftOf("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0)}, local(t0))
	d.Workers[0].Says = &Answer{Ready: true, LeaseLeftMs: new(int64(5000))}
	r := d.Complete()
	if got := r.Summary.ShortestLeaseMs; got == nil || *got != 5000 {
		t.Errorf("%v ms are left", got)
	}
}

// The texts of problems have the details that only the node itself knows.
func TestOwnProblemsHaveDetails(t *testing.T) {
	for _, row := range []struct {
		change func(*node.Snapshot)
		want   string
	}{
		{func(s *node.Snapshot) { s.Cause = node.CauseLeaseExpired }, "for too long (connection refused)"},
		{func(s *node.Snapshot) { s.Cause = node.CauseZooKeeperUnreachable }, "does not answer (connection refused), and"},
		{func(s *node.Snapshot) { s.Cause = node.CauseReservedBound }, "cannot be written (no space left), or"},
		{func(s *node.Snapshot) { s.Cause = node.CauseClockBehind }, "behind the last ID by 1m1s"},
		{func(s *node.Snapshot) { s.Cause = node.CauseClockWrong },
			"The machine's clock is wrong: 59m59s slow, compared with 4 of 5 other clocks"},
		{func(s *node.Snapshot) { s.Degraded = []string{node.TroubleZooKeeper} },
			"no answer from ZooKeeper since 10:31:37 UTC (connection refused)"},
		{func(s *node.Snapshot) { s.Degraded = []string{node.TroubleDisk} }, "to its state directory (no space left)"},
		{func(s *node.Snapshot) {
			s.Degraded, s.Disk.Error = []string{node.TroubleDisk}, "/var/lib/flaked was deleted, renamed or replaced"
		}, "to its state directory (deleted, renamed or replaced)"},
		{func(s *node.Snapshot) { s.Degraded = []string{node.TroubleOffset} },
			"off: 59m59s slow, compared with the worst of 5 other clocks"},
		{func(s *node.Snapshot) { s.Degraded = []string{node.TroubleLeap} }, "clock leapt 4.0s ahead"},
		{func(s *node.Snapshot) { s.Degraded = []string{node.TroubleCoasting} }, "clock went back by 700ms, and"},
	} {
		s := node.Snapshot{NowMs: time.Date(2026, 11, 22, 10, 32, 5, 0, time.UTC).UnixMilli()}
		s.ZooKeeper.Error, s.ZooKeeper.HeartbeatAgeMs = "dial tcp: connect: connection refused", new(int64(28_000))
		s.Disk.Error = "write: no space left on device"
		s.Clock = node.ClockSnapshot{WorstMs: new(-3_599_000.0), Against: 4, Voters: 5, BehindMs: 61_400,
			UnfollowedLeapMs: 4000, CoastingMs: 700}
		row.change(&s)
		s.Ready = s.Cause == ""
		if found := (OwnWorker{s}).Problems(); len(found) != 1 || !strings.Contains(found[0].Text, row.want) {
			t.Errorf("%+v, want %q", found, row.want)
		}
	}
}

// The disk fills up before a node has confirmed its worker. Its refusal says nothing of that, and the node never
// serves.
func TestDiskOfANodeThatRefusesForAnotherReason(t *testing.T) {
	for cause, want := range map[node.Cause]bool{node.CauseConfirming: true, node.CauseReservedBound: false} {
		s := node.Snapshot{Cause: cause, Degraded: []string{node.TroubleDisk}}
		isDisk := func(p Problem) bool { return p.Cause == node.TroubleDisk }
		if got := slices.ContainsFunc(OwnWorker{s}.Problems(), isDisk); got != want {
			t.Errorf("%s: the node itself says %v", cause, got)
		}
		w := WorkerReport{Says: &Answer{Cause: cause, Degraded: s.Degraded}}
		if got := slices.ContainsFunc((Report{}).answerProblems(w), isDisk); got != want {
			t.Errorf("%s: the report says %v", cause, got)
		}
	}
}
