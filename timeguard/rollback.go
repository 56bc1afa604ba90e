package timeguard

import (
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/limits"
)

// LeafMaxBehind is the most that is waited for when the clock went back:
// Leaf's rule, SnowflakeIDGenImpl.get: `if (offset <= 5) wait(offset << 1)`.
const LeafMaxBehind = 5 * time.Millisecond

// RollbackPolicy is what a node does when its clock is behind the last ID. It
// is a worker.RollbackRule. The zero policy is Leaf's.
type RollbackPolicy struct {
	kind rollbackKind
	// limit is the longest wait, or how far the issuing clock may be ahead of
	// the wall clock; 0 for the others.
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

// rollbackKinds are the policies as they are written.
var rollbackKinds = [...]struct {
	name string
	// limit is what there is by default, most the highest; 0: it has none.
	limit, most time.Duration
}{
	rollbackLeaf:   {name: "leaf"},
	rollbackRefuse: {name: "refuse"},
	rollbackWait:   {name: "wait", limit: time.Second, most: limits.MaxStartWait},
	rollbackCoast:  {name: "coast", limit: limits.RotateBehind, most: limits.MaxCoast},
	rollbackBits:   {name: "rollback-bits"},
}

// CountRollbacks is the policy of layouts that have a rollback field.
var CountRollbacks = RollbackPolicy{kind: rollbackBits}

// lookAgain is after how long a request that waits for a clock looks again: it
// may have been put right, or another worker taken.
const lookAgain = 50 * time.Millisecond

// ParseRollbackPolicy reads leaf, refuse, wait, coast or rollback-bits; wait and
// coast with a limit of their own if they are to, as wait=500ms.
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
		if p.limit, err = time.ParseDuration(limit); err != nil || k.most == 0 || p.limit < time.Millisecond || p.limit > k.most {
			if k.most == 0 {
				return RollbackPolicy{}, fmt.Errorf("timeguard: %s takes no limit", name)
			}
			return RollbackPolicy{}, fmt.Errorf("timeguard: %s=%s: a time from 1ms to %s", name, limit, k.most)
		}
		return p, nil
	}
	return RollbackPolicy{}, fmt.Errorf("timeguard: %q is no policy: leaf, refuse, wait[=TIME], coast[=TIME] or rollback-bits", s)
}

// String is the policy as ParseRollbackPolicy reads it, always in full.
func (p RollbackPolicy) String() string {
	k := rollbackKinds[p.kind]
	if k.most == 0 {
		return k.name
	}
	return k.name + "=" + p.limit.String()
}

// Wait is how long a request waits for a clock that is behind by so much, if it
// does, having waited for so long already.
//
// Leaf's rule is: up to 5 ms wait twice that and look again, once; more, refuse.
// It is also that of a clock that coasts or a count that has come round, where
// these come to their ends.
func (p RollbackPolicy) Wait(behind, waited time.Duration) (time.Duration, bool) {
	switch p.kind {
	case rollbackRefuse:
		return 0, false
	case rollbackWait:
		return min(behind, lookAgain), behind+waited <= p.limit
	}
	return 2 * behind, waited == 0 && behind <= LeafMaxBehind
}

// Coast is how far the issuing clock may be ahead of a wall clock that went
// back; 0: it goes back with it.
func (p RollbackPolicy) Coast() time.Duration {
	if p.kind != rollbackCoast {
		return 0
	}
	return p.limit
}

// Counts tells whether rollbacks are counted in the layout's rollback field.
func (p RollbackPolicy) Counts() bool { return p.kind == rollbackBits }

// StartWait is how long a node that may issue nothing before floor has to
// wait. Both instants are in Unix milliseconds.
func StartWait(now, floor int64) time.Duration {
	return time.Duration(max(0, floor-now)) * time.Millisecond
}
