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
		"joined, a claim":              {attempt{usable: true}.afterJoin(false, nil, false), moveResume},
		"joined, no claim":             {attempt{}.afterJoin(false, nil, false), moveRegister},
		"no answer, a lease":           {cached.afterJoin(false, away, true), moveAlone},
		"no answer, the lease is over": {cached.afterJoin(false, away, false), moveOver},
		"no answer, not confirmed":     {attempt{usable: true}.afterJoin(false, away, true), moveOver},
		"the cluster is lost":          {cached.afterJoin(true, nil, true), moveAlone},
		"it is lost, without a lease":  {cached.afterJoin(true, nil, false), moveResume},
		"another cluster":              {cached.afterJoin(false, errors.New("another"), true), moveOver},

		"resumed":                          {cached.afterResume(nil, true, true), moveOver},
		"no answer then, a lease":          {cached.afterResume(away, true, true), moveAlone},
		"no answer then, without a lease":  {cached.afterResume(away, false, true), moveOver},
		"the clock is wrong":               {cached.afterResume(errors.New("the clock"), true, true), moveOver},
		"the record is lost, a lease":      {cached.afterResume(&coordinator.NotOursError{Lost: true}, true, true), moveAlone},
		"the record is lost":               {cached.afterResume(&coordinator.NotOursError{Lost: true}, false, true), moveAnew},
		"it is another ZooKeeper's":        {moved.afterResume(&coordinator.NotOursError{Lost: true}, true, true), moveRefuse},
		"another node has the slot":        {cached.afterResume(&coordinator.NotOursError{}, true, true), moveAnew},
		"another has it in that ZooKeeper": {moved.afterResume(&coordinator.NotOursError{}, true, true), moveAnew},
		"the slot was never acquired":      {attempt{usable: true}.afterResume(&coordinator.NotOursError{}, false, false), moveRegister},
	} {
		if row.got != row.want {
			t.Errorf("%s: %d, want %d", name, row.got, row.want)
		}
	}
}
