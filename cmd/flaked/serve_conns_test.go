package main

import "testing"

func TestConnectionsFitTheLimitOnFiles(t *testing.T) {
	for _, row := range []struct {
		limit     uint64
		listeners int
		want      int
	}{
		{1 << 63, 3, mostConns}, {10_300, 1, mostConns}, {10_298, 1, mostConns}, {10_297, 1, mostConns - 1},
		{1024, 1, 726}, {1024, 2, 470}, {256, 1, 64}, {0, 1, 1},
	} {
		if got := connsWithin(row.limit, row.listeners); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}
