package main

import "testing"

func TestMarginIsATenthRoundedUpAndTenAtLeast(t *testing.T) {
	for taken, want := range map[int64]int64{0: 10, 1: 10, 100: 10, 101: 11, 109: 11, 110: 11, 111: 12,
		1_000_000: 100_000, 1<<63 - 1: 1<<63/10 + 1} {
		if got := margin(taken); got != want {
			t.Errorf("%d: %d, not %d", taken, got, want)
		}
	}
}

// recover leaves out a tenth of the number of values, not of the highest value: a sequence may start at a million.
func TestRecoverHelpSaysHowManyValuesAreLeftOut(t *testing.T) {
	for _, want := range []string{"It leaves out a tenth as\nmany values as were issued, at least ten.",
		"(default: leaves out a tenth as"} {
		call(t, "", "seq", "recover", "--help").wants(t, exitOK, want, "")
	}
}
