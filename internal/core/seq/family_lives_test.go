package seq

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

func familyOf(sections int, lease time.Duration) operator.Definition {
	set := settings(1000)
	set.HoldMs = lease.Milliseconds()
	return operator.Definition{Name: "f:*", Mode: record.Ordered, Sections: sections, Map: plain(), Settings: set, StartGiven: true}
}

// A family gets new lives with other numbers of sections. Requests go on, and the owner may be cut off at the end of a
// life.
func TestFamilyWithOtherSections(t *testing.T) {
	ctx := context.Background()
	for _, lease := range []time.Duration{record.DefaultLease, record.MaxLease} {
		s, nodes := newLinked(t, lease, 2)
		a, b := nodes[0], nodes[1]
		op := s.operator()
		var all []*contest
		for k := range 6 {
			all = append(all, s.contest(fmt.Sprintf("f:%d", k)))
		}
		ask := func(d time.Duration) {
			for end := s.now + d.Milliseconds(); s.now < end; s.pass(50 * time.Millisecond) {
				for _, c := range all {
					c.ask(a)
					c.ask(b)
				}
			}
		}
		for _, sections := range []int{4, 1, 7, 2} {
			for {
				if _, err := op.Create(ctx, familyOf(sections, lease)); err == nil {
					break
				} else if ask(5 * time.Second); s.now > 3_000_000 {
					t.Fatal(err)
				}
			}
			ask(8 * time.Second)
			before := all[0].values[a] + all[0].values[b]
			ask(8 * time.Second)
			if all[0].values[a]+all[0].values[b] == before {
				t.Errorf("%d sections: no values", sections)
			}
			a.store.Partition()
			ask(lease / 2)
			if _, err := op.Delete(ctx, "f:*"); err != nil {
				t.Fatal(err)
			}
			ask(lease / 2)
			a.store.Heal()
			a, b = b, a
		}
		for _, c := range all {
			for n, took := range c.longest {
				if took > 6000 {
					t.Errorf("a request for %s has waited for %d ms at %s", c.name, took, n.slot)
				}
			}
		}
	}
}
