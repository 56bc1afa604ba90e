package main

import "testing"

func TestANodeTakesASecondProcessorOnlyIfNobodyChoseOne(t *testing.T) {
	for _, c := range []struct {
		name       string
		processors int
		variable   string
		want       bool
	}{
		{"one core", 1, "", true},
		{"two cores, or a limit on CPU time", 2, "", false},
		{"many cores", 64, "", false},
		{"one core, and one processor is wanted", 1, "1", false},
		{"many cores, and one processor is wanted", 1, "1", false},
		{"more than one is wanted", 4, "4", false},
	} {
		if got := onlyOne(c.processors, c.variable); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
