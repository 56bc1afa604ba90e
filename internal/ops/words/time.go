package words

import (
	"fmt"
	"math"
	"time"
)

// TimeFormat is a layout to the millisecond. Call UTC() first: its Z is literal.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Duration formats a duration in milliseconds in at most two units: 1.2s, 45s, 12m5s, 23h59m, 5d3h.
func Duration(ms int64) string {
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	s := ms / 1000
	switch {
	case s < 1:
		return fmt.Sprintf("%s%dms", sign, ms)
	case s < 10:
		return fmt.Sprintf("%s%d.%ds", sign, s, ms%1000/100)
	case s < 60:
		return fmt.Sprintf("%s%ds", sign, s)
	case s < 3600:
		return fmt.Sprintf("%s%dm%ds", sign, s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%s%dh%dm", sign, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%dd%dh", sign, s/86400, s/3600%24)
}

// Moment formats a time in Unix milliseconds with its distance from now. 0 becomes "-".
func Moment(ms int64, now time.Time) string {
	if ms == 0 {
		return "-"
	}
	at := time.UnixMilli(ms).UTC()
	if d := at.Sub(now); d >= 0 {
		return at.Format(TimeFormat) + " (in " + Duration(d.Milliseconds()) + ")"
	}
	return at.Format(TimeFormat) + " (" + Duration(now.Sub(at).Milliseconds()) + " ago)"
}

// OffsetWithoutSign formats a clock offset in milliseconds without its sign. From ten seconds on, it uses
// longer units.
func OffsetWithoutSign(ms float64) string {
	ms = math.Abs(ms)
	if ms >= 10_000 {
		return Duration(int64(ms))
	}
	return fmt.Sprintf("%gms", math.Round(ms*10)/10)
}

// Offset formats a clock offset and its uncertainty, both in milliseconds: "+1.2ms +/- 0.5ms fast". It has the
// direction in words only if the offset is larger than its uncertainty.
func Offset(ms, uncertain float64) string {
	sign, way := "", ""
	switch {
	case ms > 0:
		sign, way = "+", " fast"
	case ms < 0:
		sign, way = "-", " slow"
	}
	if math.Abs(ms) <= uncertain {
		way = ""
	}
	return sign + OffsetWithoutSign(ms) + " +/- " + OffsetWithoutSign(uncertain) + way
}
