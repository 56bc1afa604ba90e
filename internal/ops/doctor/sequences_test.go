package doctor

import (
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
)

func TestNodesThatHaveNotFollowed(t *testing.T) {
	const now = 1_790_000_000_000
	entry := func(followed int64, live bool) coordinator.Entry {
		return coordinator.Entry{Worker: 3, Live: live,
			Slot: coordinator.Slot{Followed: coordinator.Followed{Changes: followed, Incarnation: 1},
				HeartbeatMs: 3000, Labels: coordinator.Labels{Name: "ids-3"}}}
	}
	reports := entry(7, false)
	reports.Slot.Node, reports.Stat.Mtime = "n", now-6000
	for _, tc := range []struct {
		name  string
		entry coordinator.Entry
		ago   time.Duration // since the last change
		want  bool
	}{
		{"all changes", entry(8, true), time.Hour, false},
		{"not the last one", entry(7, true), time.Hour, true},
		{"not yet", entry(7, true), 9 * time.Second, false},
		{"too late", entry(7, true), 11 * time.Second, true},
		{"no sequences", entry(0, true), time.Hour, false},
		{"not connected", entry(7, false), time.Hour, false},
		{"its live lock is missing for a moment", reports, time.Hour, true},
	} {
		found := notFollowed(coordinator.Roster{Entries: []coordinator.Entry{tc.entry}, Now: now, LeaderNow: now},
			seq.State{Changes: 7, Incarnation: 1, Time: 1e9, ChangedAt: 1e9 - tc.ago.Milliseconds()})
		if len(found) > 0 != tc.want {
			t.Errorf("%s: %+v", tc.name, found)
		}
		if tc.want {
			found[0].wants(t, tc.name, Warn, "followed by worker 3 (ids-3)")
		}
	}
}
