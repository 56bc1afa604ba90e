package main

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	got := strings.Join(wrap("one two  three averyverylongword x", 8), "|")
	if want := "one two|three|averyverylongword|x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
