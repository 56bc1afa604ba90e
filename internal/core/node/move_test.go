package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

func TestMoves(t *testing.T) {
	away := fmt.Errorf("%w: no route", store.ErrUnreachable)
	notOurs := &coordinator.NotOursError{}
	resumed := func(err error, leased bool) outcome {
		return outcome{resumed: true, err: err, leased: leased, granted: true}
	}
	gone := func(leased bool) outcome {
		return outcome{resumed: true, err: notOurs, lost: true, leased: leased, granted: true}
	}
	cached, otherZK := attempt{usable: true, cached: true}, attempt{usable: true, otherZK: true}
	for name, row := range map[string]struct {
		got, want move
	}{
		"joined, a claim":              {attempt{usable: true}.move(outcome{}), moveResume},
		"joined, no claim":             {attempt{}.move(outcome{}), moveRegister},
		"no answer, a lease":           {cached.move(outcome{err: away, leased: true}), moveAlone},
		"no answer, the lease is over": {cached.move(outcome{err: away}), moveOver},
		"no answer, not confirmed":     {attempt{usable: true}.move(outcome{err: away, leased: true}), moveOver},
		"the cluster is lost":          {cached.move(outcome{lost: true, leased: true}), moveAlone},
		"it is lost, without a lease":  {cached.move(outcome{lost: true}), moveResume},
		"another cluster":              {cached.move(outcome{err: errors.New("another"), leased: true}), moveOver},

		"resumed":                          {cached.move(resumed(nil, true)), moveOver},
		"no answer then, a lease":          {cached.move(resumed(away, true)), moveAlone},
		"no answer then, without a lease":  {cached.move(resumed(away, false)), moveOver},
		"the clock is wrong":               {cached.move(resumed(errors.New("the clock"), true)), moveOver},
		"the record is lost, a lease":      {cached.move(gone(true)), moveAlone},
		"the record is lost":               {cached.move(gone(false)), moveAnew},
		"it is another ZooKeeper's":        {otherZK.move(gone(true)), moveRefuse},
		"another node has the slot":        {cached.move(resumed(notOurs, true)), moveAnew},
		"another has it in that ZooKeeper": {otherZK.move(resumed(notOurs, true)), moveAnew},
		"the slot was never acquired": {attempt{usable: true}.move(outcome{resumed: true, err: notOurs}),
			moveRegister},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", name, row.got, row.want)
		}
	}
}
