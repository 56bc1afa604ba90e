package idstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

// Sequences are the names of the sequences that Conform uses. Nothing else may use them.
type Sequences struct {
	// Plain is required. It is a new sequence, which begins at 1 and has an increment of 1.
	Plain string
	// Strict is a new strict sequence. Empty means that Conform does not test NextKeyed.
	Strict string
	// Missing is the name of a sequence that does not exist. Empty means that Conform does not
	// test the refusal, because the source has a sequence of every name.
	Missing string
}

// Conform tests that a source keeps the promises of ids.Source. A program that only uses a Source
// does not need it. It takes some 50,000 IDs and values, and a minute at most.
func Conform(t *testing.T, source ids.Source, names Sequences) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Run("IDs are new and ascending", func(t *testing.T) { ascending(ctx, t, source) })
	t.Run("IDs of many goroutines are different", func(t *testing.T) { different(ctx, t, source) })
	t.Run("sequence", func(t *testing.T) { values(ctx, t, source.Sequence(names.Plain)) })
	if names.Strict != "" {
		t.Run("keys", func(t *testing.T) { keyed(ctx, t, source.Sequence(names.Strict)) })
	}
	t.Run("refusals", func(t *testing.T) { refusals(ctx, t, source, names) })
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

func different(ctx context.Context, t *testing.T, source ids.Source) {
	const goroutines, each = 8, 500
	got := make([][]worker.ID, goroutines)
	var asking sync.WaitGroup
	for i := range got {
		asking.Go(func() {
			for range each {
				id, err := source.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], id)
			}
		})
	}
	asking.Wait()
	all := slices.Concat(got...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != goroutines*each {
		t.Errorf("%d different IDs of %d", n, goroutines*each)
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

func refusals(ctx context.Context, t *testing.T, source ids.Source, names Sequences) {
	q := source.Sequence(names.Plain)
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
	if names.Missing != "" {
		_, err := source.Sequence(names.Missing).Next(ctx)
		if e, ok := errors.AsType[*ids.ReplyError](err); !ok || e.Reason() != "no-sequence" || e.Code != "ERR" || errors.Is(err, ids.ErrUnavailable) {
			t.Errorf("a name without a sequence: %v", err)
		}
	}
}
