// Package words formats values, names and errors for people.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// TimeFormat formats a time in UTC, to the millisecond.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Clean replaces unprintable characters in text from ZooKeeper or a file. Otherwise, anybody
// who can write there could send control codes to the terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Brief formats a duration in milliseconds in at most two units: 1.2s, 45s, 12m5s, 23h59m, 5d3h.
func Brief(ms int64) string {
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

// Instant formats a time in Unix milliseconds with its distance from now. 0 becomes "-".
func Instant(ms int64, now time.Time) string {
	if ms == 0 {
		return "-"
	}
	at := time.UnixMilli(ms).UTC()
	if d := at.Sub(now); d >= 0 {
		return at.Format(TimeFormat) + " (in " + Brief(d.Milliseconds()) + ")"
	}
	return at.Format(TimeFormat) + " (" + Brief(now.Sub(at).Milliseconds()) + " ago)"
}

// OffsetSize formats a clock offset in milliseconds without its sign. From ten seconds on, it uses
// longer units.
func OffsetSize(ms float64) string {
	ms = math.Abs(ms)
	if ms >= 10_000 {
		return Brief(int64(ms))
	}
	return fmt.Sprintf("%gms", math.Round(ms*10)/10)
}

// Thousands inserts commas into digits: "1,234,567".
func Thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// mostListed is the number of names in a text.
const mostListed = 5

// Listed joins the first five names, and says how many more of all there are.
func Listed(names []string, all int) string {
	shown := names[:min(mostListed, len(names))]
	text := strings.Join(shown, ", ")
	if all > len(shown) {
		text += fmt.Sprintf(" and %d more", all-len(shown))
	}
	return text
}

// OffsetWords formats a clock offset and its uncertainty, both in milliseconds: "+1.2ms +/- 0.5ms fast". It has the
// direction in words only if the offset is larger than its uncertainty.
func OffsetWords(ms, uncertain float64) string {
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
	return sign + OffsetSize(ms) + " +/- " + OffsetSize(uncertain) + way
}

// Short returns a text of a node or a record for people: without control characters, and not too long.
func Short(s string) string {
	const most = 64
	if runes := []rune(Clean(s)); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return Clean(s)
}

// Spans returns ascending numbers as in [0-3 7].
func Spans(numbers []int) (parts []string) {
	for k := 0; k < len(numbers); {
		end := k + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		part := strconv.Itoa(numbers[k])
		if end > k+1 {
			part += "-" + strconv.Itoa(numbers[end-1])
		}
		parts, k = append(parts, part), end
	}
	return parts
}

// WorkersText names workers, in ascending order: worker 3, or workers 1-2, 7.
func WorkersText(workers []int) string {
	word := "worker "
	if len(workers) > 1 {
		word = "workers "
	}
	return word + strings.Join(Spans(workers), ", ")
}

// Plural returns a number with thousands separated, and a noun in singular or plural.
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(fmt.Sprint(n)) + " " + noun
}

// OfSections says how many of all sections something is true for.
func OfSections(some, all int) string {
	return fmt.Sprintf("%d of %s", some, Plural(int64(all), "section"))
}

// RateText returns a number of values or requests a second.
func RateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0/s"
	case perSecond < 0.05:
		return "<0.1/s"
	case perSecond < 10:
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return Thousands(fmt.Sprintf("%.0f", math.Round(perSecond))) + "/s"
}
