package doctor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
)

func TestSequences(t *testing.T) {
	some := func(names ...string) view.SomeSequences {
		return view.SomeSequences{Count: len(names), Names: names}
	}
	for _, tc := range []struct {
		name  string
		s     *view.Sequences
		level Level
		text  string
	}{
		{"none", nil, OK, "there are no named sequences"},
		{"all is well", &view.Sequences{Count: 3}, OK, "3 named sequences. None is frozen"},
		{"frozen", &view.Sequences{Count: 3, Frozen: some("a", "b")}, Warn, "Frozen sequences, which issue no"},
		{"exhausted", &view.Sequences{Count: 3, Exhausted: some("a")}, Warn, "Exhausted sequences, whose values are"},
		{"nearly used", &view.Sequences{Count: 3, NearlyUsed: some("a")}, Warn, "used to 80 % or more: a. Raise the"},
	} {
		found := judgeSequences(tc.s)
		if len(found) != 1 {
			t.Errorf("%s: %+v", tc.name, found)
		}
		found[0].wants(t, tc.name, tc.level, tc.text)
	}
	if found := judgeSequences(&view.Sequences{Frozen: some("a"), Exhausted: some("b"),
		NearlyUsed: some("c")}); len(found) != 3 {
		t.Errorf("%+v", found)
	}
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	unreadSequences(t.Context(), seq.ErrNoState).wants(t, "no state", OK, "there are no named sequences")
	unreadSequences(over, context.DeadlineExceeded).wants(t, "too many", Skip, "--timeout")
	unreadSequences(t.Context(), fmt.Errorf("/seq/s/000/a: %w", seq.ErrDamaged)).wants(t, "damaged", Fail,
		"/seq/s/000/a: ")
}

func TestNodesThatHaveNotFollowed(t *testing.T) {
	const now = 1_790_000_000_000
	entry := func(followed int64, live bool) coordinator.Entry {
		return coordinator.Entry{Worker: 3, Live: live,
			Slot: coordinator.Slot{Followed: coordinator.Followed{Changes: followed, Incarnation: 1},
				HeartbeatMs: 3000, Labels: coordinator.Labels{Name: "ids-3"}}}
	}
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
	} {
		found := notFollowed([]coordinator.Entry{tc.entry},
			seq.State{Changes: 7, Incarnation: 1, Time: 1e9, ChangedAt: 1e9 - tc.ago.Milliseconds()}, now)
		if len(found) > 0 != tc.want {
			t.Errorf("%s: %+v", tc.name, found)
		}
		if tc.want {
			found[0].wants(t, tc.name, Warn, "followed by worker 3 (ids-3)")
		}
	}
}
