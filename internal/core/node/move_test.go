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
	cached, moved := attempt{usable: true, cached: true}, attempt{usable: true, moved: true}
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

		"resumed":                          {cached.move(outcome{resumed: true, leased: true, held: true}), moveOver},
		"no answer then, a lease":          {cached.move(outcome{resumed: true, err: away, leased: true, held: true}), moveAlone},
		"no answer then, without a lease":  {cached.move(outcome{resumed: true, err: away, held: true}), moveOver},
		"the clock is wrong":               {cached.move(outcome{resumed: true, err: errors.New("the clock"), leased: true, held: true}), moveOver},
		"the record is lost, a lease":      {cached.move(outcome{resumed: true, lost: true, err: &coordinator.NotOursError{}, leased: true, held: true}), moveAlone},
		"the record is lost":               {cached.move(outcome{resumed: true, lost: true, err: &coordinator.NotOursError{}, held: true}), moveAnew},
		"it is another ZooKeeper's":        {moved.move(outcome{resumed: true, lost: true, err: &coordinator.NotOursError{}, leased: true, held: true}), moveRefuse},
		"another node has the slot":        {cached.move(outcome{resumed: true, err: &coordinator.NotOursError{}, leased: true, held: true}), moveAnew},
		"another has it in that ZooKeeper": {moved.move(outcome{resumed: true, err: &coordinator.NotOursError{}, leased: true, held: true}), moveAnew},
		"the slot was never acquired":      {attempt{usable: true}.move(outcome{resumed: true, err: &coordinator.NotOursError{}}), moveRegister},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", name, row.got, row.want)
		}
	}
}
