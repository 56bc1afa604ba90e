package seq

import (
	"testing"

	"github.com/flaked/flaked/sequence"
)

func TestStanding(t *testing.T) {
	const now = 1_800_000_000_000
	fresh := Record{
		Map:      sequence.Map{Start: 1, Increment: 1, Max: 1_000_000},
		Settings: Settings{Block: 32, SupplyMs: 1000, HoldMs: 1000, Ceiling: 10, HardCeiling: 100},
		Credit:   50, At: now, Incarnation: 1,
	}
	for _, row := range []struct {
		name        string
		incarnation int64
		change      func(*Record)
		want        Standing
	}{
		{"in use", 1, func(*Record) {}, Standing{}},
		{"no credit", 1, func(r *Record) { r.Credit = 0 }, Standing{Refusal: CeilingReached}},
		{"used up", 1, func(r *Record) { r.Next = r.Positions() }, Standing{Refusal: Exhausted}},
		{"data lost: the credit", 2, func(*Record) {}, Standing{Skip: 50}},
		{"data lost, an old record", 2, func(r *Record) { r.At -= 20_000 }, Standing{Skip: 50 + 20*100}},
		{"data lost, strict", 2, func(r *Record) { r.Mode = Strict }, Standing{Refusal: Frozen}},
		{"data lost, more than a tenth of what is left", 2, func(r *Record) { r.Max = 499 }, Standing{Refusal: Frozen}},
	} {
		r := fresh
		row.change(&r)
		if got := r.Standing(State{Incarnation: row.incarnation, Time: now}); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
