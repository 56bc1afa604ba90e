package seq

import (
	"flag"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/histories"
	"github.com/flaked/flaked/internal/testkit/race"
)

var simStaged = flag.Int("sim.staged", 0, "play so many scenarios in each history, and nothing else")

// game returns random histories of nodes that take blocks, with faults. It checks that no value is issued twice, that
// each node's values ascend, and that the ceiling holds.
func game() histories.Game {
	n := uint64(30)   // `make test` plays hundreds
	if race.Enabled { // one goroutine: the detector only costs time
		n = 5
	}
	return histories.Game{
		Package: "./internal/core/seq", File: "sequences", Count: n, Of: "positions",
		Play: func(_ *testing.T, seed uint64) histories.History { return playHistory(seed) },
		// Operators draw IDs of sequences and nonces at random.
		Drawn: regexp.MustCompile(`"[0-9a-f]{16}"|/seq/k/[0-9a-f]{16}`),
	}
}

// TestSimulation plays histories.
func TestSimulation(t *testing.T) {
	if total := game().Run(t); total != nil {
		t.Logf("%d histories, %v, %s each", total.Histories, total.Counts, total.Each())
	}
}

func TestSameSeedGivesTheSameHistory(t *testing.T) { game().SameSeed(t, 4) }

// playHistory plays the history of a seed.
func playHistory(seed uint64) (h *history) {
	h = newHistory(seed)
	defer h.removeBase()
	defer func() {
		if r := recover(); r != nil {
			h.violated("panic", "%v\n%s", r, debug.Stack())
		}
	}()
	h.play()
	return h
}

func (h *history) Text() string  { return strings.Join(h.log, "\n") + "\n" }
func (h *history) Wrong() string { return h.wrong }

func (h *history) Counts() map[string]int {
	return map[string]int{"positions": h.issued, "losses of data": len(h.lostAt)}
}
