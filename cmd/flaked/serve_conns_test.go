package main

import "testing"

func TestConnectionsFitTheLimitOnFiles(t *testing.T) {
	for limit, want := range map[uint64]int{
		1 << 63: mostConns, 10_300: mostConns, 10_298: mostConns, 10_297: mostConns - 1, 1024: 726, 256: 64, 0: 1,
	} {
		if got := connsWithin(limit); got != want {
			t.Errorf("%d files: %d", limit, got)
		}
	}
}
