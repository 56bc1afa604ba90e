package timeguard

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// LeafMaxBehind is the largest rollback of the clock that Leaf's rule waits for. The rule
// is in SnowflakeIDGenImpl.get: `if (offset <= 5) wait(offset << 1)`.
const LeafMaxBehind = 5 * time.Millisecond

// RollbackPolicy says what a node does when its clock is behind the last ID. It implements
// worker.RollbackRule. The zero policy is Leaf's.
type RollbackPolicy struct {
	kind rollbackKind
	// limit is the longest wait under wait, or the largest lead of the issuing clock over
	// the wall clock under coast. It is 0 for the other policies.
	limit time.Duration
}

type rollbackKind int

const (
	rollbackLeaf rollbackKind = iota
	rollbackRefuse
	rollbackWait
	rollbackCoast
	rollbackBits
)

// rollbackKinds has the name and the limits of each policy.
var rollbackKinds = [...]struct {
	name string
	// limit is the default limit, and most is the highest. Both are 0 for a policy without
	// a limit.
	limit, most time.Duration
}{
	rollbackLeaf:   {name: "leaf"},
	rollbackRefuse: {name: "refuse"},
	rollbackWait:   {name: "wait", limit: time.Second, most: limits.MaxStartWait},
	rollbackCoast:  {name: "coast", limit: limits.RotateBehind, most: limits.MaxCoast},
	rollbackBits:   {name: "rollback-bits"},
}

// CountRollbacks is the policy of layouts with a rollback field.
var CountRollbacks = RollbackPolicy{kind: rollbackBits}

// lookAgain is the longest time that a request waits for a clock before it looks again. By
// then the clock may have been corrected, or the node may have another worker.
const lookAgain = 50 * time.Millisecond

// ParseRollbackPolicy reads leaf, refuse, wait, coast or rollback-bits. wait and coast may
// have a limit, as in wait=500ms: 1ms to 10s for wait, 1ms to 4s for coast.
func ParseRollbackPolicy(s string) (RollbackPolicy, error) {
	name, limit, limited := strings.Cut(s, "=")
	for kind, k := range rollbackKinds {
		if k.name != name {
			continue
		}
		p := RollbackPolicy{kind: rollbackKind(kind), limit: k.limit}
		if !limited {
			return p, nil
		}
		var err error
		if p.limit, err = time.ParseDuration(limit); err != nil || k.most == 0 || p.limit < time.Millisecond ||
			p.limit > k.most {
			if k.most == 0 {
				return RollbackPolicy{}, fmt.Errorf("%s takes no limit", name)
			}
			return RollbackPolicy{}, fmt.Errorf("%s=%s: the limit must be between 1ms and %s", name, limit, k.most)
		}
		return p, nil
	}
	return RollbackPolicy{}, fmt.Errorf("unknown policy %q. Use leaf, refuse, wait[=TIME], coast[=TIME] or "+
		"rollback-bits", s)
}

// String returns the policy in the form that ParseRollbackPolicy reads, always with its
// limit.
func (p RollbackPolicy) String() string {
	k := rollbackKinds[p.kind]
	if k.most == 0 {
		return k.name
	}
	return k.name + "=" + p.limit.String()
}

// Wait returns how long a request pauses before it looks at the clock again. behind is how
// far the clock is behind the last ID, and waited is how long the request has paused so
// far. Wait returns false if the request must be refused.
//
// Leaf's rule waits once: if the clock is behind by up to 5 ms, it waits twice that. The
// rule also holds under coast and rollback-bits, once a rollback is more than they can
// cover.
func (p RollbackPolicy) Wait(behind, waited time.Duration) (time.Duration, bool) {
	switch p.kind {
	case rollbackRefuse:
		return 0, false
	case rollbackWait:
		return min(behind, lookAgain), behind+waited <= p.limit
	}
	return 2 * behind, waited == 0 && behind <= LeafMaxBehind
}

// Coast returns how far the issuing clock may be ahead of a wall clock that went back. 0
// means that it goes back with the wall clock.
func (p RollbackPolicy) Coast() time.Duration {
	if p.kind != rollbackCoast {
		return 0
	}
	return p.limit
}

// Counts reports whether rollbacks are counted in the layout's rollback field.
func (p RollbackPolicy) Counts() bool { return p.kind == rollbackBits }
