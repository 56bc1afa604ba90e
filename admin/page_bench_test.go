package admin

import (
	"testing"
	"time"
)

// BenchmarkPage measures one rendering of the page for a cluster of 1,024 workers, and its
// size in bytes.
func BenchmarkPage(b *testing.B) {
	cfg := picture(1024, 1024)
	s, err := New(whole(cfg))
	if err != nil {
		b.Fatal(err)
	}
	found, _ := cfg.Slots(b.Context())
	s.slots.Report, s.slots.at = found, time.Now()
	for back := pastKept; back > 0; back -= offsetEvery {
		s.pages.past.noteClocks(time.Now().Add(-back), found, true)
	}
	for b.Loop() {
		s.pages.last.at = time.Time{}
		s.commonParts()
	}
	size := 0
	for _, text := range s.commonParts() {
		size += len(text)
	}
	b.ReportMetric(float64(size), "bytes")
	b.ReportMetric(float64(len(s.commonParts()["map"])), "map-bytes")
}
