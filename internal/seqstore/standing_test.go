package seqstore

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

func TestStanding(t *testing.T) {
	const now = 1_800_000_000_000
	fresh := Record{
		Map:      sequence.Map{Start: 1, Increment: 1, Max: 1_000_000},
		Settings: Settings{Block: 32, SupplyMs: 1000, HoldMs: 1000, Ceiling: 10, HardCeiling: 100},
		Credit:   50, At: now, Epoch: 1,
	}
	for _, row := range []struct {
		name   string
		epoch  int64
		change func(*Record)
		want   Standing
	}{
		{"in use", 1, func(*Record) {}, Standing{}},
		{"no credit", 1, func(r *Record) { r.Credit = 0 }, Standing{Refusal: CeilingReached}},
		{"used up", 1, func(r *Record) { r.Next = r.Positions() }, Standing{Refusal: Exhausted}},
		{"data lost: the credit, and 10 s at the hard ceiling", 2, func(*Record) {}, Standing{Skip: 50 + 10*100}},
		{"data lost, an old record", 2, func(r *Record) { r.At -= 20_000 }, Standing{Skip: 50 + 30*100}},
		{"data lost, more than a tenth of what is left", 2, func(r *Record) { r.Max = 10_499 }, Standing{Refusal: Frozen}},
	} {
		r := fresh
		row.change(&r)
		if got := r.Standing(State{Epoch: row.epoch}, now); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// Purge must refuse until PurgeableAt, and no longer.
func TestPurgeIsRefusedUntilPurgeableAt(t *testing.T) {
	now := int64(1_800_000_000_000)
	store := zkstore.NewMem(func() int64 { return now }).Session()
	if err := store.EnsureRoot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), statePath, State{Cluster: "c", Epoch: 1}.marshal(), zkstore.Persistent); err != nil {
		t.Fatal(err)
	}
	o := Operator{Store: store, Now: func() int64 { return now }, By: "me", Guard: Unguarded}
	_, err := o.Create(t.Context(), Definition{
		Name: "a", Map: sequence.Map{Start: 1, Increment: 1, Max: 100},
		Settings: Settings{Block: 32, SupplyMs: 1000, HoldMs: 70_000, Ceiling: 1, HardCeiling: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Set(t.Context(), "a", Change{Settings: func(s *Settings) { s.HoldMs = 1000 }}); err != nil { // the longer hold counts
		t.Fatal(err)
	}
	deleted, err := o.Delete(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if want := now + 70_000 + 10_000; deleted.PurgeableAt() != want {
		t.Errorf("purgeable at %d, want %d: a node that is cut off may know the longer hold", deleted.PurgeableAt(), want)
	}
	now = deleted.PurgeableAt() - 1
	if err := o.Purge(t.Context(), "a"); !errors.Is(err, ErrTooEarly) {
		t.Errorf("1 ms too early: %v", err)
	}
	now++
	if err := o.Purge(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, _, err := o.Show(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the purge: %v", err)
	}
}
