package lineproto

import (
	"strings"
	"testing"
	"time"
)

func TestDurationBucket(t *testing.T) {
	var d durations
	bounds := d.histogram().Bounds
	for _, row := range []struct {
		d  time.Duration
		le float64 // 0: above all
	}{
		{-5, 1e-6}, {0, 1e-6}, {1, 1e-6}, {1000, 1e-6}, {1001, 2e-6}, {2000, 2e-6}, {2001, 4e-6}, {4000, 4e-6},
		{4001, 8e-6},
		{100 * time.Microsecond, 128e-6}, {time.Second, 1.048576}, {2 * time.Second, 2.097152},
		{2100 * time.Millisecond, 0}, {time.Hour, 0},
	} {
		var got float64
		if b := durationBucket(int64(row.d)); b < len(bounds) {
			got = bounds[b]
		}
		if got != row.le {
			t.Errorf("%v is counted up to %v, want %v", row.d, got, row.le)
		}
	}
}

func TestSizeBucket(t *testing.T) {
	bounds := newTestServer(t, Config{}).Counters().Sizes.Bounds
	for _, row := range []struct {
		n  int
		le float64
	}{{1, 1}, {2, 4}, {4, 4}, {5, 16}, {16, 16}, {17, 64}, {1000, 1024}, {10_000, 16384}, {1_000_000, 1048576},
		{1_048_577, 0}} {
		var got float64
		if b := sizeBucket(row.n); b < len(bounds) {
			got = bounds[b]
		}
		if got != row.le {
			t.Errorf("%d is counted up to %v, want %v", row.n, got, row.le)
		}
	}
}

// Either engine measures every request once.
func TestDurations(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{})
		c := r.dial(t)
		c.send(strings.Repeat("GET\n", 500) + "GET 3000\n" + "PING one\n")
		for c.line() != "one" {
		}
		c.send("PING two\n")
		c.want("two")
		c.CloseWrite()
		c.wantEOF()
		until(t, "all are counted", func() bool { return r.Counters().Durations.Count() >= 503 })
		if h := r.Counters().Durations; h.Count() != 503 || h.Sum <= 0 || h.Sum > 60 {
			t.Errorf("%d requests in %v s, want 503", h.Count(), h.Sum)
		}
	})
}
