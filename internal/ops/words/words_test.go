package words

import (
	"strconv"
	"testing"
	"time"
)

func TestBrief(t *testing.T) {
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
		if got := Brief(row.d.Milliseconds()); got != row.want {
			t.Errorf("%v: %q, want %q", row.d, got, row.want)
		}
	}
}

func TestInstant(t *testing.T) {
	now := time.UnixMilli(1795196809128)
	for ms, want := range map[int64]string{
		0:             "-",
		1795196809128: "2026-11-20T17:46:49.128Z (in 0ms)",
		1795196812128: "2026-11-20T17:46:52.128Z (in 3.0s)",
		1795196749128: "2026-11-20T17:45:49.128Z (1m0s ago)",
	} {
		if got := Instant(ms, now); got != want {
			t.Errorf("%d: %q, want %q", ms, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	if got := Clean("a\x1b[2Jb\nc\u202ed é世"); got != "a\ufffd[2Jb\ufffdc\ufffdd é世" {
		t.Errorf("%q", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Thousands(strconv.Itoa(n)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWorkersText(t *testing.T) {
	for want, workers := range map[string][]int{"worker 3": {3}, "workers 1-2": {1, 2}, "workers 0, 2-4, 7": {0, 2, 3, 4, 7}} {
		if got := WorkersText(workers); got != want {
			t.Errorf("%v: %q, want %q", workers, got, want)
		}
	}
}
