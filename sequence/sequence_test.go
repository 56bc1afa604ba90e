package sequence

import (
	"math"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"order": true, "order:20261122": true, "a/b{c}.d-e_f": true, "X": true, "{app}:order": true, "2026:order": true,
		"_a": true, "5a": true, "5": false, "2026": false, "-a": false, ":a": false, "}": false,
		strings.Repeat("a", MaxName): true, strings.Repeat("a", MaxName+1): false,
		"": false, "a b": false, "a*": false, "é": false, "a\x00": false, "a%2F": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err := CheckName([]byte(name)); (err == nil) != ok {
			t.Errorf("%q as bytes: %v", name, err)
		}
	}
	if err := CheckName("zähler"); !strings.Contains(err.Error(), "must not contain 'ä'") {
		t.Error(err)
	}
	name := []byte(strings.Repeat("a:", MaxName/2))
	if n := testing.AllocsPerRun(100, func() { CheckName(name) }); n != 0 {
		t.Errorf("a good name allocates %v times", n)
	}
}

func TestMap(t *testing.T) {
	for _, c := range []struct {
		m         Map
		positions int64
		last      int64
	}{
		{Map{Start: 1, Increment: 1, Max: 10}, 10, 10},
		{Map{Start: 1, Increment: 3, Max: 10}, 4, 10},
		{Map{Start: 2, Increment: 3, Max: 10}, 3, 8},
		{Map{Start: 0, Increment: 1, Max: math.MaxInt64}, math.MaxInt64, math.MaxInt64 - 1},
		{Map{Start: 1, Increment: 1, Max: math.MaxInt64}, math.MaxInt64, math.MaxInt64},
		{Map{Start: 7, Increment: 5, Max: 7}, 1, 7},
		{Map{Start: 1, Increment: math.MaxInt64, Max: math.MaxInt64}, 1, 1},
	} {
		if err := c.m.Check(); err != nil {
			t.Errorf("%v: %v", c.m, err)
		}
		if n := c.m.Positions(); n != c.positions || c.m.Value(n-1) != c.last {
			t.Errorf("%v: %d positions, the last has %d", c.m, n, c.m.Value(n-1))
		}
	}
	for _, m := range []Map{{Start: -1, Increment: 1, Max: 10}, {Start: 1, Max: 10},
		{Start: 11, Increment: 1, Max: 10}} {
		if m.Check() == nil {
			t.Errorf("%v passes", m)
		}
	}
}
