package worker

import (
	"context"
	"testing"
	"time"
)

func TestCounts(t *testing.T) {
	counts := new(Counts)
	g, c := newManual(t, func(cfg *GeneratorConfig) { cfg.Counts = counts })
	check := func(what string, ticks, waits, refusals int64) {
		t.Helper()
		if a, b, r := counts.TickWaits.Load(), counts.RollbackWaits.Load(),
			counts.RollbackRefusals.Load(); a != ticks || b != waits || r != refusals {
			t.Errorf("%s: %d %d %d, want %d %d %d", what, a, b, r, ticks, waits, refusals)
		}
	}
	if _, err := g.Reserve(t.Context(), 4096); err != nil {
		t.Fatal(err)
	}
	check("a whole tick", 0, 0, 0)
	mustNext(t, g)
	check("one more", 1, 0, 0)
	c.step(-3 * time.Millisecond)
	mustNext(t, g)
	check("a little back", 1, 1, 0)
	c.step(-time.Second)
	if _, err := g.Next(context.Background()); err == nil {
		t.Fatal("no error")
	}
	check("far back", 1, 1, 1)
}
