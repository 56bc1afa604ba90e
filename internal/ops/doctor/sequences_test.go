package doctor

import (
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

func TestNodesThatHaveNotFollowed(t *testing.T) {
	const now = 1_790_000_000_000
	followed := func(number int64) *coordinator.Change { return &coordinator.Change{Number: number, Incarnation: 1} }
	entry := func(last *coordinator.Change, live bool) coordinator.Entry {
		return coordinator.Entry{Worker: 3, Live: live,
			Slot: coordinator.Slot{Followed: coordinator.Followed{Last: last},
				HeartbeatMs: 3000, Labels: coordinator.Labels{Name: "ids-3"}}}
	}
	reports := entry(followed(6), false)
	reports.Slot.Node, reports.Stat.Mtime = "n", now-6000
	for _, tc := range []struct {
		name  string
		entry coordinator.Entry
		ago   time.Duration // since the last change
		want  bool
	}{
		{"all changes", entry(followed(7), true), time.Hour, false},
		{"not the last one", entry(followed(6), true), time.Hour, true},
		{"not yet", entry(followed(6), true), 9 * time.Second, false},
		{"too late", entry(followed(6), true), 11 * time.Second, true},
		{"no sequences", entry(nil, true), time.Hour, false},
		{"not connected", entry(followed(6), false), time.Hour, false},
		{"its live lock is missing for a moment", reports, time.Hour, true},
	} {
		found := notFollowed(coordinator.Roster{Entries: []coordinator.Entry{tc.entry}, Now: now, LeaderNow: now},
			record.State{Changes: 7, Incarnation: 1, Time: 1e9, ChangedAt: 1e9 - tc.ago.Milliseconds()})
		if len(found) > 0 != tc.want {
			t.Errorf("%s: %+v", tc.name, found)
		}
		if tc.want {
			found[0].wants(t, tc.name, Warn, "followed by worker 3 (ids-3)")
		}
	}
}
