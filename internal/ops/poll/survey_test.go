package poll

import (
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
)

// An operator decides by the outcome whether a node may still run.
func TestOutcomeOfANodeWithSeveralAddresses(t *testing.T) {
	denied := Reply{Address: "a", Outcome: health.AccessDenied, Why: "no token"}
	silent := Reply{Address: "b", Outcome: health.NoAnswer, Why: "connection refused"}
	other := Reply{Address: "c", Outcome: health.Answered, Name: "ids-2", snapshot: node.Snapshot{Node: "n2"}}
	elsewhere := Reply{Address: "d", Outcome: health.TimedOut, Why: "timed out"}
	for _, row := range []struct {
		name    string
		replies []Reply
		outcome health.Outcome
		why     string
	}{
		{"none", []Reply{elsewhere}, health.NoAddress, ""},
		{"silent", []Reply{silent, elsewhere}, health.NoAnswer, "connection refused"},
		{"denied, then silent", []Reply{denied, silent}, health.AccessDenied, "no token"},
		{"silent, then denied", []Reply{silent, denied}, health.AccessDenied, "no token"},
		{"another node answers", []Reply{denied, silent, other}, health.AnotherNode, "ids-2 answers there"},
	} {
		s := &Survey{Replies: row.replies}
		outcome, why := s.OutcomeOf(Holder{identity: "n1", dialable: []string{"a", "b", "c"}})
		if outcome != row.outcome || why != row.why {
			t.Errorf("%s: %s (%s), want %s (%s)", row.name, outcome, why, row.outcome, row.why)
		}
	}
}
