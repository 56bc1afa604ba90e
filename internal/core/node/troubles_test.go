package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

func TestDegradedListsTroubles(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Snapshot)
		want   []string
	}{
		{"nothing", func(*Snapshot) {}, []string{}},
		{"not before the first heartbeat", func(s *Snapshot) { s.ZooKeeper.OK = false }, []string{}},
		{"a heartbeat failed", func(s *Snapshot) { s.ZooKeeper.trouble = troubleOf(errors.New("cut off")) },
			[]string{TroubleZooKeeper}},
		{"a quota", func(s *Snapshot) { s.ZooKeeper.trouble = troubleOf(fmt.Errorf("%w: set", store.ErrQuota)) },
			[]string{TroubleQuota}},
		{"a damaged record", func(s *Snapshot) {
			s.ZooKeeper.trouble = troubleOf(fmt.Errorf("x: %w", coordinator.ErrDamaged))
		}, []string{TroubleDamaged}},
		{"started alone", func(s *Snapshot) { s.FromCache = true }, []string{TroubleFromCache}},
		{"a full disk", func(s *Snapshot) { s.Disk.OK = false }, []string{TroubleDisk}},
		{"an offset", func(s *Snapshot) { s.Clock.WorstMs, s.Clock.WorstUncertaintyMs = new(-512.0), new(11.0) },
			[]string{TroubleOffset}},
		{"one that may be none", func(s *Snapshot) {
			s.Clock.WorstMs, s.Clock.WorstUncertaintyMs = new(-512.0),
				new(13.0)
		}, []string{}},
		{"a clock that went back", func(s *Snapshot) { s.Clock.CoastingMs = 800 }, []string{TroubleCoasting}},
		{"a leap and a freeze", func(s *Snapshot) { s.Clock.UnfollowedLeapMs, s.FrozenUntilMs = 1, new(int64(5)) },
			[]string{TroubleLeap, TroubleFrozen}},
	} {
		s := Snapshot{Disk: DiskSnapshot{OK: true}, ZooKeeper: ZooKeeperSnapshot{OK: true}}
		row.change(&s)
		if got := s.degraded(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
