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
		return outcome{tried: true, err: err, leased: leased, granted: true}
	}
	gone := func(leased bool) outcome {
		return outcome{tried: true, err: notOurs, lost: true, leased: leased, granted: true}
	}
	alone, otherZK := attempt{usable: true, mayStartAlone: true}, attempt{usable: true, otherZK: true}
	for name, row := range map[string]struct {
		got, want move
	}{
		"joined, a claim":              {attempt{usable: true}.next(outcome{}), moveResume},
		"joined, no claim":             {attempt{}.next(outcome{}), moveRegister},
		"no answer, a lease":           {alone.next(outcome{err: away, leased: true}), moveAlone},
		"no answer, the lease is over": {alone.next(outcome{err: away}), moveOver},
		"no answer, not confirmed":     {attempt{usable: true}.next(outcome{err: away, leased: true}), moveOver},
		"the cluster is lost":          {alone.next(outcome{lost: true, leased: true}), moveAlone},
		"it is lost, without a lease":  {alone.next(outcome{lost: true}), moveResume},
		"another cluster":              {alone.next(outcome{err: errors.New("another"), leased: true}), moveOver},

		"resumed":                          {alone.next(resumed(nil, true)), moveOver},
		"no answer then, a lease":          {alone.next(resumed(away, true)), moveAlone},
		"no answer then, without a lease":  {alone.next(resumed(away, false)), moveOver},
		"the clock is wrong":               {alone.next(resumed(errors.New("the clock"), true)), moveOver},
		"the record is lost, a lease":      {alone.next(gone(true)), moveAlone},
		"the record is lost":               {alone.next(gone(false)), moveAnew},
		"it is another ZooKeeper's":        {otherZK.next(gone(true)), moveRefuse},
		"another node has the slot":        {alone.next(resumed(notOurs, true)), moveAnew},
		"another has it in that ZooKeeper": {otherZK.next(resumed(notOurs, true)), moveAnew},
		"the slot was never acquired": {attempt{usable: true}.next(outcome{tried: true, err: notOurs}),
			moveRegister},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", name, row.got, row.want)
		}
	}
}
