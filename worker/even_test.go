package worker

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var evenIDs = flag.Int("even-ids", 200_000, "IDs that TestRemaindersAreEven makes for each line of its table")

// remainders counts the remainders of IDs of one worker that come at random times, rate a second on average.
func remainders(t *testing.T, l Layout, rate float64, moduli []int64) [][]int {
	rnd := rand.New(rand.NewPCG(1, uint64(rate)))
	g, clock := newManual(t, func(cfg *GeneratorConfig) {
		cfg.Layout, cfg.Worker, cfg.SequenceStart, cfg.Rand = l, 1, StartRandom, rnd.Uint32N
	})
	clock.ns.Store(l.Epoch*unixNanosPerMs + int64(24*time.Hour))
	counts := make([][]int, len(moduli))
	for i, n := range moduli {
		counts[i] = make([]int, n)
	}
	for range *evenIDs {
		clock.step(time.Duration(rnd.ExpFloat64() / rate * 1e9))
		run, pause, err := g.Try(1, 0)
		for err == nil && run.Len == 0 {
			clock.step(pause.For)
			run, pause, err = g.Try(1, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range moduli {
			counts[i][int64(run.First)%n]++
		}
	}
	return counts
}

// docs/layouts.md has the table: go test ./worker -run RemaindersAreEven -v -args -even-ids 3000000
func TestRemaindersAreEven(t *testing.T) {
	moduli := []int64{2, 16, 64, 100, 128, 256, 1000, 1024}
	for _, p := range Presets() {
		even := p.Layout.Even()
		if p.Name == "leaf" && even < 1024 {
			t.Errorf("the default layout is even for n up to %d only", even)
		}
		for _, rate := range []float64{1, 100, 10_000} {
			line := make([]float64, len(moduli))
			for i, counts := range remainders(t, p.Layout, rate, moduli) {
				mean := float64(*evenIDs) / float64(moduli[i])
				line[i] = float64(slices.Max(counts)) / mean
				if least := float64(slices.Min(counts)) / mean; moduli[i] <= even && (line[i] > 1.4 || least < 0.5) {
					t.Errorf("%s, %v IDs a second, n=%d: %.2f to %.2f of the mean", p.Name, rate, moduli[i], least, line[i])
				}
			}
			t.Logf("%-14s even to %4d, %6v a second: the most frequent remainder of n=%v has %.2f of the mean", p.Name,
				even, rate, moduli, line)
		}
	}
}
