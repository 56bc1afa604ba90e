package node

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCause(t *testing.T) {
	for _, row := range []struct {
		code, reason string
		change       func(*Snapshot)
		want         string
	}{
		{"NOTREADY", "starting reason=no-worker-yet", nil, "no-worker-yet"},
		{"NOTREADY", "no durable bound: the state directory does not answer reason=no-durable-bound", nil, "no-durable-bound"},
		{"NOTREADY", "stopping", nil, "stopping"},
		{"CLOCK", "the clock is behind the last ID behind_ms=9 retry_after_ms=9", nil, "clock-behind"},
		{"CLOCK", "this node's clock is wrong by most voters offset_ms=7000", func(s *Snapshot) { s.Clock.Wrong = true }, "clock-wrong"},
		{"FENCED", "the lease has run out and ZooKeeper could not be reached to extend it", func(s *Snapshot) { s.Worker = new(7) }, "lease-over"},
		{"FENCED", "this node lost its worker and is registering as a new one", nil, "lost-worker"},
		{"EXHAUSTED", "the layout's time field is used up", nil, "time-field-used-up"},
		{"", "", func(s *Snapshot) { s.Ready = true }, ""},
	} {
		s := Snapshot{Code: row.code, Reason: row.reason}
		if row.change != nil {
			row.change(&s)
		}
		if got := s.cause(); got != row.want {
			t.Errorf("-%s %s: %q, want %q", row.code, row.reason, got, row.want)
		}
	}
}

func TestDegraded(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Snapshot)
		want   []string
	}{
		{"nothing", func(*Snapshot) {}, []string{}},
		{"not before the first heartbeat", func(s *Snapshot) { s.ZooKeeper.OK = false }, []string{}},
		{"a heartbeat failed", func(s *Snapshot) { s.ZooKeeper.Error = "cut off" }, []string{TroubleZooKeeper}},
		{"started alone", func(s *Snapshot) { s.FromCache = true }, []string{TroubleFromCache}},
		{"a full disk", func(s *Snapshot) { s.Disk.OK = false }, []string{TroubleDisk}},
		{"an offset", func(s *Snapshot) { s.Clock.WorstMs, s.Clock.WorstErrorMs = new(-512.0), new(11.0) }, []string{TroubleOffset}},
		{"one that may be none", func(s *Snapshot) { s.Clock.WorstMs, s.Clock.WorstErrorMs = new(-512.0), new(13.0) }, []string{}},
		{"a clock that went back", func(s *Snapshot) { s.Clock.CoastingMs = 800 }, []string{TroubleCoasting}},
		{"a leap and a freeze", func(s *Snapshot) { s.Clock.UnfollowedLeapMs, s.FrozenUntilMs = 1, new(int64(5)) }, []string{TroubleLeap, TroubleFrozen}},
	} {
		s := Snapshot{Disk: DiskSnapshot{OK: true}, ZooKeeper: ZooKeeperSnapshot{OK: true}}
		row.change(&s)
		if got := s.degraded(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

var reasonInSource = regexp.MustCompile(`reason=([a-z]+(?:-[a-z]+)+)`)

// Whatever a node refuses for, or is not quite well for, somebody can look up.
func TestEveryReasonIsDocumented(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	refusals, http := read("../docs/operations.md"), read("../docs/admin.md")
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range reasonInSource.FindAllStringSubmatch(read(file), -1) {
			found++
			if !strings.Contains(refusals, "reason="+m[1]+"`") {
				t.Errorf("docs/operations.md does not say what to do about reason=%s (%s)", m[1], file)
			}
		}
	}
	if found < 7 {
		t.Errorf("%d reasons in the source: is this where they are?", found)
	}
	for _, word := range append(Troubles(), causeClockWrong, causeClockBehind, causeLeaseOver, causeLostWorker, causeTimeUsedUp, causeStopping) {
		if !strings.Contains(http, "`"+word+"`") {
			t.Errorf("docs/admin.md says nothing of %s", word)
		}
	}
}
