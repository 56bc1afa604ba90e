package seq

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/sequence"
)

// livesWorld is a name that is created and deleted many times, with all the values that any of its lives has issued.
type livesWorld struct {
	*stage
	rng     *rand.Rand
	issued  map[int64]string // the life
	life    record.Record
	highest int64
	// scattered: some life was scattered, so that values have no order.
	scattered     bool
	strictHighest int64 // the highest value that a strict life must be above
	since         int64 // the highest value since the last purge
	// top is above all values that a node may have taken.
	top int64
	// jump is the part of the sequence time that a node has yet to put ahead, ms.
	jump int64
	log  []string
}

func (w *livesWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%8d ", w.now)+fmt.Sprintf(format, args...))
}

func (w *livesWorld) wrong(format string, args ...any) {
	w.t.Fatalf("%s\n%s", strings.Join(w.log, "\n"), fmt.Sprintf(format, args...))
}

// definition returns a random life.
func (w *livesWorld) definition() operator.Definition {
	d := operator.Definition{Name: "n", StartGiven: true, Settings: settings([]int64{50, 1000}[w.rng.IntN(2)])}
	d.HoldMs = []int64{1000, 30_000, 80_000}[w.rng.IntN(3)]
	d.Map = sequence.Map{Start: []int64{0, 1, w.rng.Int64N(1000), w.highest + 1,
		w.highest + w.rng.Int64N(1000)}[w.rng.IntN(5)], Increment: 1, Max: sequence.MaxJavaScript}
	switch w.rng.IntN(4) {
	case 0:
		d.Increment = 1 + w.rng.Int64N(7)
	case 1:
		d.Salt = 1 + w.rng.IntN(4)
		d.Start >>= w.rng.IntN(2) * d.Salt
	case 2:
		d.Scatter = 16
		if w.life.Scatter > 0 && w.rng.IntN(2) == 0 {
			d.Map = w.life.Map
		}
	}
	if d.Scatter == 0 && w.rng.IntN(4) == 0 {
		d.Max = max(d.Start+1, w.highest+w.rng.Int64N(300)) << d.Salt
	}
	if w.rng.IntN(3) == 0 {
		d.Mode = record.Strict
	}
	if _, lost, _ := forgotten(w.operator(), "n"); lost {
		d.Start, d.Max = w.top+1, sequence.MaxJavaScript
	}
	return d
}

// ask asks a node, and checks that no life has issued what it gets.
func (w *livesWorld) ask(a *actor, n int) {
	c := a.ask("n", n, false).finish()
	if !c.done || c.err != nil {
		w.note("%d values: %v", n, c.err)
		return
	}
	w.note("%d values: %v", n, c.runs)
	for _, r := range c.runs {
		for k := range r.Len {
			v := int64(r.At(k))
			if life, again := w.issued[v]; again {
				w.wrong("%d was issued before, by %s", v, life)
			}
			w.issued[v] = w.life.ID
			if !w.scattered && v <= w.strictHighest {
				w.wrong("%d comes after %d of a strict life", v, w.strictHighest)
			}
			w.top = max(w.top, v+100_000)
			w.highest, w.since = max(w.highest, v), max(w.since, v)
			if w.life.Mode == record.Strict {
				w.strictHighest = w.since
			}
		}
	}
}

// turn gives the name one to three lives. Often a node that is cut off holds values of the one before.
func (w *livesWorld) turn() {
	w.rng.Shuffle(len(w.nodes), func(i, j int) { w.nodes[i], w.nodes[j] = w.nodes[j], w.nodes[i] })
	a, b := w.nodes[0], w.nodes[1]
	if w.rng.IntN(2) == 0 {
		w.ask(a, 1+w.rng.IntN(9))
		w.note("a node is cut off")
		a.store.Partition()
	}
	for range 1 + w.rng.IntN(3) {
		w.newLife()
	}
	w.run(4 * time.Second)
	for _, n := range []*actor{b, a, b, a} {
		w.ask(n, 1+w.rng.IntN(30))
	}
	if w.rng.IntN(2) == 0 {
		w.heal()
	}
	if w.rng.IntN(10) == 0 {
		w.lose()
	}
}

// newLife deletes the name, sometimes purges it, and creates it again. The operators' commands may be refused.
func (w *livesWorld) newLife() {
	op := w.operator()
	r, err := op.Delete(w.t.Context(), "n")
	w.note("delete, wait %d from %d: %v", r.WaitMs, r.WaitFrom, err)
	if w.rng.IntN(3) == 0 {
		w.jumpTime(w.jump)
		w.jump = 0
	}
	w.run(time.Duration(w.rng.IntN(2)) * 5 * time.Second)
	if w.rng.IntN(2) == 0 {
		w.run(time.Duration(w.rng.IntN(150)) * time.Second)
	}
	if w.rng.IntN(2) == 0 {
		err := op.Purge(w.t.Context(), "n")
		if w.note("purge: %v", err); err == nil {
			w.issued, w.scattered, w.since, w.strictHighest = map[int64]string{}, false, -1, -1
		}
	}
	d := w.definition()
	r, err = op.Create(w.t.Context(), d)
	if w.note("create %s %+v: %v", d.Mode, d.Map, err); err != nil {
		return
	}
	if w.life = r; d.Scatter > 0 {
		w.scattered, w.top = true, max(w.top, r.Highest(0))
	}
	if w.rng.IntN(2) == 0 { // the deletion comes long after the last raise
		w.run(15 * time.Second)
	}
}

func (w *livesWorld) heal() {
	w.note("all nodes are back")
	for _, a := range w.nodes {
		a.store.Heal()
	}
}

// lose lets a node note a loss of data. A node that comes back later may put the sequence time ahead.
func (w *livesWorld) lose() {
	w.heal()
	w.nodes[0].noteLoss()
	w.run(3 * stageConfirm)
	w.jump = w.rng.Int64N(200_000)
	w.note("incarnation %d", w.incarnation())
}

// No value of any life of a name comes twice, unless it was purged, whatever the modes, maps, starts and maxima of its
// lives.
func TestNoValueOfAnyLifeComesTwice(t *testing.T) {
	lives := map[string]bool{}
	seeds := uint64(60)
	if race.Enabled { // one goroutine: the detector only costs time
		seeds = 6
	}
	for seed := range seeds {
		w := livesWorld{stage: newStage(t), rng: rand.New(rand.NewPCG(seed, 1)), issued: map[int64]string{},
			highest: -1, since: -1, strictHighest: -1, top: 100_000}
		w.node()
		w.node()
		w.note("seed %d", seed)
		for range 20 {
			w.turn()
		}
		for _, life := range w.issued {
			lives[fmt.Sprint(seed, life)] = true
		}
	}
	t.Logf("values of %d lives", len(lives))
}
