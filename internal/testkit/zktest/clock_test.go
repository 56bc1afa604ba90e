//go:build unix

package zktest

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// stamped checks that ZooKeeper stamps a write with true time plus offset.
func stamped(t *testing.T, ens *Ensemble, offset time.Duration) {
	t.Helper()
	conn := connect(t, ens.Addrs())
	before := time.Now().Add(offset).UnixMilli()
	set(t, conn, "/stamped", "again")
	after := time.Now().Add(offset).UnixMilli()
	_, stat, err := conn.Get("/stamped")
	if err != nil {
		t.Fatal(err)
	}
	if stat.Mtime < before || stat.Mtime > after {
		t.Errorf("stamped %d, which is not within %d to %d by a clock %s off", stat.Mtime, before, after, offset)
	}
}

func TestServerStampsByItsClock(t *testing.T) {
	t.Parallel()
	var clock ownclock.Clock
	clock.Set(time.Hour)
	ens := SingleOn(t, &clock)
	stamped(t, ens, time.Hour)
	clock.Step(-3 * time.Hour)
	stamped(t, ens, -2*time.Hour)
	ens.Kill(0)
	clock.Set(-time.Minute)
	ens.Start(0)
	ens.WaitServing(t)
	stamped(t, ens, -time.Minute)
}

// The leader's clock stamps a write, whichever server the client writes through.
func TestLeadersClockStampsRecords(t *testing.T) {
	t.Parallel()
	var clocks [3]*ownclock.Clock
	for i := range clocks {
		clocks[i] = new(ownclock.Clock)
		clocks[i].Set(time.Duration(i+1) * time.Hour)
	}
	ens := ThreeOn(t, clocks)
	leader := ens.Leader(t)
	stamped(t, ens, clocks[leader].Offset())
	ens.Kill(leader)
	ens.WaitServing(t)
	next := clocks[ens.Leader(t)]
	stamped(t, ens, next.Offset())
	next.Step(-24 * time.Hour)
	stamped(t, ens, next.Offset())
}
