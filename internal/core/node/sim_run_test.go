package node

import (
	"flag"
	"maps"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flaked/flaked/internal/testkit/histories"
	"github.com/flaked/flaked/internal/testkit/race"
)

var (
	simWorld = flag.String("sim.world", "", "which of the other worlds to play in")
	simIDs   = flag.Bool("sim.ids", false, "judge by the IDs alone, not by the rules that keep them apart")
)

// simActions is how many actions a history has. A change of it changes the history of each seed.
const simActions = 60

// Names of what is counted, beside those of scenarios.
const (
	countIDs    = "IDs"
	countAhead  = "runs of IDs ahead of the clock"
	countRolled = "runs of IDs after a rollback that was counted"
)

// game returns the game in the world of that name, or in the usual one for "".
func game(t *testing.T, world string) histories.Game {
	change, flags := named(t, world), ""
	if world != "" {
		flags = " -sim.world='" + world + "'"
	}
	n := uint64(100)  // `make test` plays thousands
	if race.Enabled { // one goroutine: the detector only costs time
		n = 40
	}
	return histories.Game{Package: "./internal/core/node", Flags: flags, File: "history", Count: n, Of: countIDs,
		Play: func(t *testing.T, seed uint64) histories.History { return play(t, seed, change) }}
}

// play plays the history of a seed in a world that change has modified. Contexts and timers of the code under test use
// the time of a synctest bubble, which stands still while anything runs. So no history depends on the speed of the
// machine.
func play(t *testing.T, seed uint64, change func(*world)) *sim {
	var s *sim
	synctest.Test(t, func(*testing.T) {
		s = newSim(seed)
		change(&s.world)
		s.found()
		s.idsOnly = *simIDs
		defer func() {
			if r := recover(); r != nil {
				s.violated(wrongSim, "panic: %v\n%s", r, debug.Stack())
			}
		}()
		s.run(simActions)
	})
	return s
}

func (s *sim) Wrong() string { return s.wrong }

func (s *sim) Text() string {
	var b strings.Builder
	for _, l := range s.history {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *sim) Counts() map[string]int {
	counts := map[string]int{countIDs: s.ids, countAhead: s.ahead, countRolled: s.rolled}
	maps.Copy(counts, s.played)
	return counts
}

// TestSimulation plays histories.
func TestSimulation(t *testing.T) {
	total := game(t, *simWorld).Run(t)
	if total == nil {
		return
	}
	t.Logf("%d histories, %d IDs, %s each", total.Histories, total.Counts[countIDs], total.Each())
	if total.Counts[countIDs] == 0 && total.Histories >= 50 {
		t.Error("no node has issued an ID")
	}
	for _, st := range scenarios {
		n := total.Counts[st.name]
		t.Logf("%6d x %s", n, st.name)
		if n == 0 && total.Histories >= 500 && *simWorld == "" {
			t.Errorf("no history came to: %s", st.name)
		}
	}
}

func TestSameSeedGivesTheSameHistory(t *testing.T) { game(t, *simWorld).SameSeed(t, 16) }
