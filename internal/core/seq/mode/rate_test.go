package mode

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	var c Counts
	at := func(seconds float64) int64 { return 1 + int64(seconds*float64(time.Second)) }
	for _, step := range []struct {
		seconds float64
		issued  int64
		want    float64
	}{
		{0, 7, 0},          // begins
		{0.001, 107, 1.67}, // as if a whole window had passed
		{10, 1007, 16.67},
		{100, 10_007, 100},   // begins anew
		{101, 10_007, 98.33}, // goes by the last window
		{130, 13_007, 100},
		{400, 13_007, 10}, // begins anew
		{500, 13_007, 0},
	} {
		c.Issued = step.issued
		if got := c.PerSecond(at(step.seconds)); got < step.want-0.01 || got > step.want+0.01 {
			t.Errorf("at %v s: %v a second, want %v", step.seconds, got, step.want)
		}
		c.BeginMinute(at(step.seconds))
	}
}
