package words

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0ms"},
		{999 * time.Millisecond, "999ms"},
		{1250 * time.Millisecond, "1.2s"},
		{9999 * time.Millisecond, "9.9s"},
		{59*time.Second + 999*time.Millisecond, "59s"},
		{12*time.Minute + 5*time.Second, "12m5s"},
		{23*time.Hour + 59*time.Minute, "23h59m"},
		{47 * time.Hour, "47h0m"},
		{123 * time.Hour, "5d3h"},
		{-90 * time.Second, "-1m30s"},
	} {
		if got := Duration(row.d.Milliseconds()); got != row.want {
			t.Errorf("%v: %q, want %q", row.d, got, row.want)
		}
	}
}

func TestMoment(t *testing.T) {
	now := time.UnixMilli(1795196809128)
	for ms, want := range map[int64]string{
		0:             "-",
		1795196809128: "2026-11-20T17:46:49.128Z (in 0ms)",
		1795196812128: "2026-11-20T17:46:52.128Z (in 3.0s)",
		1795196749128: "2026-11-20T17:45:49.128Z (1m0s ago)",
	} {
		if got := Moment(ms, now); got != want {
			t.Errorf("%d: %q, want %q", ms, got, want)
		}
	}
}
