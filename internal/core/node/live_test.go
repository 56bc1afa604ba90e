package node

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// extendLoop turns least often with the longest reserve. Even then it must not count as stuck between two turns.
func TestLongestReserveIsNotStuck(t *testing.T) {
	if longest := (Config{Reserve: limits.MaxReserve}).extendEvery(); longest >= stuckAfter {
		t.Errorf("it turns every %s, and is stuck after %s", longest, stuckAfter)
	}
}

func TestLiveReportsAStuckLoop(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	extend, keep := n.turns.extend.Load(), n.turns.keep.Load()
	n.until("both loops turn", func() bool {
		return n.turns.extend.Load() > extend && n.turns.keep.Load() > keep && extend+keep > 0
	})
	if err := n.Live(); err != nil {
		t.Errorf("a node that serves: %v", err)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		// extend and keep are how long ago each loop turned.
		extend, keep time.Duration
		writing      bool
		want         string // "" is live
	}{
		{"turning", 0, 0, false, ""},
		{"a bit late", 5 * time.Second, 30 * time.Second, false, ""},
		{"the bound is left alone", time.Minute, 0, false,
			"the loop that extends the reserved bound has been stuck for 1m0s"},
		{"nothing is reported", 0, time.Hour, false, "the loop that sends heartbeats has been stuck for 1h0m0s"},
		{"the disk is waited for", time.Hour, time.Hour, true, ""},
	} {
		n.turns.extend.Store(n.monotonic() - int64(tc.extend))
		n.turns.keep.Store(n.monotonic() - int64(tc.keep))
		if tc.writing {
			n.saveMu.Lock()
		}
		err := n.Live()
		if tc.writing {
			n.saveMu.Unlock()
		}
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	idle, _ := r.node()
	if err := idle.Live(); err != nil {
		t.Errorf("before it runs: %v", err)
	}
}
