package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// checkFollowers judges which nodes have followed the changes of named sequences.
func checkFollowers(ctx context.Context, zk store.Store, all coordinator.Roster) []Finding {
	st, err := operator.Commands{Store: zk}.State(ctx)
	switch {
	case errors.Is(err, operator.ErrNoState):
		return nil
	case errors.Is(err, record.ErrDamaged):
		return []Finding{{Check: "sequences", Level: Fail, Text: err.Error(), Advice: "Restore or remove this record " +
			"with ZooKeeper's own client. Nodes issue no values by a damaged record"}}
	case err != nil:
		return []Finding{failed("sequences", err)}
	}
	return notFollowed(all, st)
}

// notFollowed judges whether the nodes that run and serve sequences have followed the changes of operators. A node has
// until three heartbeats after the last change.
func notFollowed(all coordinator.Roster, st record.State) []Finding {
	now := all.LeaderNow
	changed := now - max(0, st.Time-st.ChangedAt)
	var behind []string
	for _, b := range all.NotFollowed(coordinator.Change{Number: st.Changes, Incarnation: st.Incarnation}) {
		s := b.Slot
		late := s.Followed.Last != nil && now > changed+health.ReportPatience(s.HeartbeatMs)
		if !b.Missing && late {
			behind = append(behind, fmt.Sprintf("worker %d (%s)", b.Worker, words.Clean(s.Name)))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	return []Finding{{
		Check: "sequences", Level: Warn, Text: "not all changes of sequences were followed by " +
			strings.Join(behind, ", "),
		Advice: "If doctor finds this again after some seconds, see the log of these nodes. Until they follow, they " +
			"may issue values of sequences that were deleted, or below a raised next value",
	}}
}
