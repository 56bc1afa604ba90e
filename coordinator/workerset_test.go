package coordinator

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseWorkerSet(t *testing.T) {
	for _, row := range []struct{ text, want, fails string }{
		{"7", "7", ""},
		{"900-1023", "900-1023", ""},
		{"5,3-4, 9", "3-5,9", ""},
		{"0-10,5-20,21", "0-21", ""},
		{"", "", `"" is neither`},
		{"1024", "", "0 to 1023"},
		{"5-3", "", `"5-3" is neither`},
		{"-1", "", `"-1" is neither`},
		{"1,,2", "", `"" is neither`},
		{"a-b", "", `"a-b" is neither`},
		{"99999999999", "", "is neither"},
	} {
		got, err := ParseWorkerSet(row.text, 1024)
		if string(got) != row.want || (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%q: %q, %v", row.text, got, err)
		}
	}
	if all := AllWorkers(4); all != "0-3" {
		t.Errorf("all of 4: %q", all)
	}
	if WorkerSet("nonsense").Has(0) {
		t.Error("what cannot be read opens a worker")
	}
}

// TestWorkerSetsAsSets compares Union, Minus and Has with sets of bits.
func TestWorkerSetsAsSets(t *testing.T) {
	const slots = 20
	random := func() (WorkerSet, uint32) {
		var spans []span
		var bits uint32
		for range rand.IntN(5) {
			first := rand.IntN(slots)
			last := first + rand.IntN(slots-first)
			spans = append(spans, span{first, last})
			for w := first; w <= last; w++ {
				bits |= 1 << w
			}
		}
		return format(spans), bits
	}
	is := func(s WorkerSet, bits uint32) bool {
		for w := range slots {
			if s.Has(w) != (bits>>w&1 == 1) {
				return false
			}
		}
		return true
	}
	for range 20_000 {
		a, abits := random()
		b, bbits := random()
		if !is(a, abits) || !is(a.Union(b), abits|bbits) || !is(a.Minus(b), abits&^bbits) {
			t.Fatalf("%q and %q: union %q, difference %q", a, b, a.Union(b), a.Minus(b))
		}
		if again, err := ParseWorkerSet(string(a), slots); a != "" && (err != nil || again != a) {
			t.Fatalf("%q is read as %q, %v", a, again, err)
		}
		if a.Union(b) != b.Union(a) || a.Minus(b).Union(b) != a.Union(b) {
			t.Fatalf("%q and %q have two forms", a, b)
		}
	}
}
