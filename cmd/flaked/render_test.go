package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := textTable{right: map[int]bool{0: true}}
	table.add("N", "NAME", "LAST")
	table.add("10", "zoë", "x")
	table.add("7", "longer", "yy")
	table.rows[1][1].colour = green
	var plain, coloured strings.Builder
	_ = table.print(&plain, false)
	_ = table.print(&coloured, true)
	want := " N  NAME    LAST\n10  zoë     x\n 7  longer  yy\n"
	if plain.String() != want {
		t.Errorf("%q, want %q", plain.String(), want)
	}
	if want = strings.Replace(want, "zoë", "\x1b[32mzoë\x1b[0m", 1); coloured.String() != want {
		t.Errorf("%q, want %q", coloured.String(), want)
	}
}

func TestWrap(t *testing.T) {
	got := strings.Join(wrap("one two  three averyverylongword x", 8), "|")
	if want := "one two|three|averyverylongword|x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
