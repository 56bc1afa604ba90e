package health

import (
	"math"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
)

// ClockOffset returns how far the clock of a live worker's node is ahead of the leader's by its last report, and
// whether that is known: the report must be recent, and of the present leader. now is Unix ms, and epoch the leader's
// epoch.
func ClockOffset(e coordinator.Entry, now, epoch int64) (offset timeguard.Offset, known bool) {
	s := e.Slot
	if !e.Live || e.Missing || s.ReportedClock == 0 || s.Stopped || s.Released ||
		now-e.Stat.Mtime > ReportPatience(s.HeartbeatMs) || e.Stat.Epoch() != epoch {
		return timeguard.Offset{}, false
	}
	return timeguard.MeasureOffset(s.ReportedClock, s.ReportedClock+s.RTTMs, e.Stat.Mtime), true
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Offset returns the offset of the worker's clock and its uncertainty in milliseconds, and whether they are known.
func (w WorkerReport) Offset() (ms, uncertain float64, known bool) {
	if w.ClockOffsetMs == nil {
		return 0, 0, false
	}
	if w.ClockUncertaintyMs != nil {
		uncertain = *w.ClockUncertaintyMs
	}
	return *w.ClockOffsetMs, uncertain, true
}

// ClockOff reports whether the worker's clock is known to be so far off that a node warns.
func (w WorkerReport) ClockOff() bool {
	ms, uncertain, known := w.Offset()
	return known && beyondWarning(ms, uncertain)
}

// WarnOffsetMs is the clock offset above which a node warns, in milliseconds.
const WarnOffsetMs = float64(limits.WarnSkew) / float64(time.Millisecond)

// beyondWarning reports whether a clock offset is above WarnOffsetMs after its uncertainty is subtracted. Both are in
// milliseconds.
func beyondWarning(ms, uncertain float64) bool { return math.Abs(ms)-uncertain > WarnOffsetMs }
