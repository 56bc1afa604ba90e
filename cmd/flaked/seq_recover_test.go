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
