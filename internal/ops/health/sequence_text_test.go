package health

import (
	"math"
	"testing"
)

func TestRatioText(t *testing.T) {
	for _, row := range []struct {
		done, all int64
		want      string
	}{
		{0, 100, "0%"},
		{1, 1_000_000, "<0.1%"},
		{1, 8, "12.5%"},
		{999_999, 1_000_000, ">99.9%"},
		{math.MaxInt64 - 1, math.MaxInt64, ">99.9%"}, // rounds to 1
		{100, 100, "100%"},
	} {
		if got := ratioText(row.done, row.all); got != row.want {
			t.Errorf("%d of %d: %s, want %s", row.done, row.all, got, row.want)
		}
	}
}

func TestUsedUpText(t *testing.T) {
	const now, day = 1_795_975_200_000, 24 * 3600 // 2026-11-29 18:00 UTC
	for _, row := range []struct {
		left      int64
		perSecond float64
		want      string
	}{
		{0, 1, ""},
		{5, 0, ""},
		{119, 1, "in less than 2 minutes"},
		{120, 1, "in about 2 minutes, 18:02 UTC"},
		{7100, 1, "in about 118 minutes, 19:58 UTC"},
		{30 * 3600 * 50, 50, "in about 30 hours, 2026-12-01 00:00 UTC"},
		{12 * day * 50, 50, "in about 12 days, 2026-12-11"},
		{400 * day, 1, "in about 400 days, 2028-01-03"},
		{12 * 365 * day, 1, "in about 12 years, 2038"},
		{99 * 365 * day, 1, "in about 99 years, 2125"},
		{100 * 365 * day, 1, "in more than 100 years"},
		{math.MaxInt64, 0.001, "in more than 100 years"},
	} {
		if got := (SequenceNote{Positions: row.left, PerSecond: row.perSecond}).usedUp(now); got != row.want {
			t.Errorf("%d at %v/s: %s, want %s", row.left, row.perSecond, got, row.want)
		}
	}
}
