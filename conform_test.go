package flaked

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// conform tests that a source keeps the promises of ids.Source. plain and strict are new sequences. Nothing else may
// use them.
func conform(t *testing.T, source ids.Source, plain, strict string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ascending(ctx, t, source)
	values(ctx, t, source.Sequence(plain))
	keyed(ctx, t, source.Sequence(strict))
	refusals(ctx, t, source, plain)
}

func ascending(ctx context.Context, t *testing.T, source ids.Source) {
	var all []worker.ID
	for _, n := range []int{1, 2, 999, 20_000} {
		some, err := source.Take(ctx, n)
		if err != nil || len(some) != n {
			t.Fatalf("Take(%d): %d IDs, %v", n, len(some), err)
		}
		one, err := source.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, some...), one)
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || all[0] < 1 {
		t.Error("the IDs are not ascending")
	}
}

func values(ctx context.Context, t *testing.T, q ids.Sequence) {
	v, err := q.Next(ctx)
	if err != nil || v != 1 {
		t.Fatalf("the first value is %d, %v", v, err)
	}
	some, err := q.Take(ctx, 20_000)
	if err != nil || len(some) != 20_000 || some[0] != 2 || !slices.IsSorted(some) {
		t.Fatalf("Take: %d values, %v", len(some), err)
	}
	first, last, err := q.Range(ctx, 100)
	if err != nil || first <= some[len(some)-1] || last != first+99 {
		t.Errorf("Range: %d to %d after %d, %v", first, last, some[len(some)-1], err)
	}
	if v, err = q.Next(ctx); err != nil || v <= last {
		t.Errorf("%d after %d, %v", v, last, err)
	}
}

func keyed(ctx context.Context, t *testing.T, q ids.Sequence) {
	first, err := q.NextKeyed(ctx, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := q.NextKeyed(ctx, "order-2")
	if err != nil || other != first+1 {
		t.Errorf("the other key has %d after %d, %v", other, first, err)
	}
	if again, err := q.NextKeyed(ctx, "order-1"); err != nil || again != first {
		t.Errorf("the key has %d, had %d, %v", again, first, err)
	}
	if v, err := q.NextKeyed(ctx, "1-order"); err == nil {
		t.Errorf("a key that begins with a digit gets %d", v)
	}
}

func refusals(ctx context.Context, t *testing.T, source ids.Source, plain string) {
	q := source.Sequence(plain)
	for _, n := range []int{0, -1, ids.MaxTake + 1} {
		if all, err := source.Take(ctx, n); err == nil {
			t.Errorf("Take(%d) returns %d IDs", n, len(all))
		}
		if all, err := q.Take(ctx, n); err == nil {
			t.Errorf("Take(%d) returns %d values", n, len(all))
		}
		if first, last, err := q.Range(ctx, n); err == nil {
			t.Errorf("Range(%d) returns %d to %d", n, first, last)
		}
	}
	if v, err := source.Sequence("5 wrong").Next(ctx); err == nil {
		t.Errorf("a sequence without a valid name gives %d", v)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if v, err := q.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %d, %v", v, err)
	}
}
