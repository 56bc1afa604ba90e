package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// printJSON prints an indented document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// ANSI codes of colours.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// clean replaces unprintable characters in text from ZooKeeper or a file. Otherwise, anybody
// who can write there could send control codes to the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// orDash returns s, or "-" for an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// brief formats a duration in at most two units: 1.2s, 45s, 12m5s, 23h59m, 5d3h.
func brief(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	s := int64(d / time.Second)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%dms", sign, d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%s%.1fs", sign, d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%ds", sign, s)
	case d < time.Hour:
		return fmt.Sprintf("%s%dm%ds", sign, s/60, s%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%dh%dm", sign, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%dd%dh", sign, s/86400, s/3600%24)
}

// instant formats a time in Unix milliseconds with its distance from now. 0 becomes "-".
func instant(ms int64, now time.Time) string {
	if ms == 0 {
		return "-"
	}
	at := time.UnixMilli(ms).UTC()
	d := at.Sub(now)
	if d < 0 {
		return at.Format(timeFormat) + " (" + brief(-d) + " ago)"
	}
	return at.Format(timeFormat) + " (in " + brief(d) + ")"
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
