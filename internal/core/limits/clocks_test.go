package limits

import (
	"testing"
	"time"
)

// Each relation is one that docs/design.md, docs/safety.md or a comment states in words.
func TestLimitsKeepTheirRelations(t *testing.T) {
	confirm := DefaultConfirm(DefaultHeartbeat)
	for _, r := range []struct {
		why      string
		left     time.Duration
		relation string
		right    time.Duration
	}{
		{"two clocks that are right by the leader's are within ClocksApart", 2 * ClocksAgree, "<=", ClocksApart},
		{"a clock is warned of before it counts as wrong", WarnSkew, "<", ClocksAgree},
		{"from the shortest lease of a usual cluster on, the grace is ClocksAgree", MinLease / GraceParts, "==",
			ClocksAgree},
		{"a clock that coasts does not look wrong if its wall clock is right", MaxCoast, "<", ClocksAgree},
		{"the default of coast is one of its values", RotateBehind, "<=", MaxCoast},
		{"a clock takes a fresh slot before a restart would refuse", RotateBehind, "<", MaxStartWait},

		{"the default reserve is one that is taken", DefaultReserve, "<", MaxReserve},
		{"a clock may coast as far as it goes", MaxCoast, "<=", MaxAhead},
		{"a restart after a crash waits for the reserved bound and does not refuse", MaxReserve, "<=", MaxStartWait},
		{"the reserved bound of one copy is within BoundSlack of the other's", MaxReserve, "<=", BoundSlack},
		{"a start from one copy waits for up to 20 s", MaxStartWait + BoundSlack, "==", 20 * time.Second},
		{"the next holder of a released slot waits for its bound and does not refuse", Cooldown, "<=", MaxStartWait},
		{"a slot that was just given back can be taken at once by a clock that is behind", ClocksApart, "<=", Cooldown},

		{"by default the confirming time is 12 s", confirm, "==", 12 * time.Second},
		{"it covers what a later holder that stopped has issued by another clock", ClocksApart, "<", confirm},
		{"the default heartbeat renews the shortest lease", 2 * DefaultHeartbeat, "<=", MinLease},
		{"the default heartbeat fits the default confirming time", DefaultHeartbeat, "<=", MaxHeartbeat(confirm)},
		{"the defaults cover a stall of half a second", Comfortable, "<=", confirm - DefaultHeartbeat},
		{"the shortest heartbeat fits the shortest confirming time", MinHeartbeat, "<=", MaxHeartbeat(MinConfirm)},
	} {
		holds := map[string]bool{"<": r.left < r.right, "<=": r.left <= r.right, "==": r.left == r.right}
		if !holds[r.relation] {
			t.Errorf("%s: %s %s %s does not hold", r.why, r.left, r.relation, r.right)
		}
	}
}
