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
	var b strings.Builder
	if want := " N  NAME    LAST\n10  zoë     x\n 7  longer  yy\n"; table.print(&b) != nil || b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestWrap(t *testing.T) {
	got := strings.Join(wrap("one two  three averyverylongword x", 8), "|")
	if want := "one two|three|averyverylongword|x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
