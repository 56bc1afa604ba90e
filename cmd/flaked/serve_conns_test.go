package main

import "testing"

func TestConnectionsFitTheLimitOnFiles(t *testing.T) {
	for _, row := range []struct {
		limit              uint64
		listeners, workers int
		want               int
	}{
		{1 << 63, 3, 64, mostConns}, {10_300, 1, 1, mostConns}, {10_298, 1, 1, mostConns}, {10_297, 1, 1, mostConns - 1},
		{1024, 1, 1, 726}, {1024, 2, 4, 464}, {256, 1, 1, 64}, {0, 1, 1, 1},
	} {
		if got := connsWithin(row.limit, row.listeners, row.workers); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}
