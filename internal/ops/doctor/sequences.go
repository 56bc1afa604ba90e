package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

// checkSequences reads the named sequences. entries are the workers, and now is Unix ms.
func checkSequences(ctx context.Context, zk store.Store, entries []coordinator.Entry, now int64) []Finding {
	o := seq.Operator{Store: zk}
	st, err := o.State(ctx)
	if err != nil {
		return []Finding{unreadSequences(ctx, err)}
	}
	behind := notFollowed(entries, st, now)
	all, st, err := o.List(ctx, "")
	if err != nil {
		return append(behind, unreadSequences(ctx, err))
	}
	return append(judgeSequences(view.CountSequences(all, st)), behind...)
}

// unreadSequences judges an error of reading the sequences.
func unreadSequences(ctx context.Context, err error) Finding {
	switch {
	case errors.Is(err, seq.ErrNoState):
		return Finding{Check: "sequences", Level: OK, Text: "there are no named sequences"}
	case errors.Is(err, seq.ErrDamaged):
		return Finding{Check: "sequences", Level: Fail, Text: err.Error(), Advice: "Restore or remove this record " +
			"with ZooKeeper's own client. Nodes issue no values by a damaged record"}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Finding{Check: "sequences", Level: Skip, Text: "skipped: there are too many named sequences to read " +
			"in time. Give a longer --timeout"}
	}
	return failed("sequences", err)
}

// judgeSequences returns a finding for each problem that an operator must solve. s is nil if there
// are no sequences.
func judgeSequences(s *view.Sequences) (found []Finding) {
	if s == nil {
		return []Finding{{Check: "sequences", Level: OK, Text: "there are no named sequences"}}
	}
	for _, p := range s.Problems() {
		found = append(found, Finding{Check: "sequences", Level: Warn, Text: p.Text, Advice: p.Advice})
	}
	if len(found) == 0 {
		found = append(found, Finding{Check: "sequences", Level: OK, Text: s.Line() +
			". None is frozen, exhausted or used to 80 % or more"})
	}
	return found
}

// notFollowed judges whether the live nodes that serve sequences have followed the changes of operators. A
// node has until three heartbeats after the last change. now is Unix ms.
func notFollowed(entries []coordinator.Entry, st seq.State, now int64) []Finding {
	changed := now - max(0, st.Time-st.ChangedAt)
	var behind []string
	for _, b := range coordinator.NotFollowed(entries,
		coordinator.Followed{Changes: st.Changes + 1, Incarnation: st.Incarnation}) {
		s := b.Slot
		late := s.Followed.Changes != 0 && now > changed+view.ReportPatience(s.HeartbeatMs)
		if !b.Absent && late {
			behind = append(behind, fmt.Sprintf("worker %d (%s)", b.Worker, view.Clean(s.Name)))
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
