package view

import (
	"fmt"
	"math"
	"regexp"
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

// Size formats a clock offset in milliseconds without its sign. From ten seconds on, it uses
// longer units.
func Size(ms float64) string {
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

// OffsetText formats the offset of the worker's clock and its uncertainty, "" if it is not known.
func (w WorkerReport) OffsetText() string {
	ms, uncertain, known := w.Offset()
	if !known {
		return ""
	}
	return OffsetWords(ms, uncertain)
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
	return sign + Size(ms) + " +/- " + Size(uncertain) + way
}

// HeldLine counts the workers in each state.
func (s Summary) HeldLine() string {
	return fmt.Sprintf("%d of %d workers held: %d live, %d disconnected, %d stopped; %d releasing, %d "+
		"record-missing, %d free; %d ever used",
		s.Held, s.Slots, s.Live, s.Disconnected, s.Stopped, s.Releasing, s.RecordMissing, s.Free, s.Used)
}

// ClocksLine names the clock that is furthest off that of ZooKeeper's leader. It returns "" if no clock was compared.
func (r Report) ClocksLine() string {
	compared, worst := 0, WorkerReport{}
	for _, w := range r.Workers {
		if w.ClockOffsetMs == nil {
			continue
		}
		compared++
		if worst.ClockOffsetMs == nil || math.Abs(*w.ClockOffsetMs) > math.Abs(*worst.ClockOffsetMs) {
			worst = w
		}
	}
	switch compared {
	case 0:
		return ""
	case 1:
		return "1 clock compared with that of ZooKeeper's leader: " + worst.OffsetText()
	}
	return fmt.Sprintf("%d clocks compared with that of ZooKeeper's leader, furthest off: %s, %s", compared,
		Whom([]WorkerReport{worst}), worst.OffsetText())
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

// internals are the texts of Go's own errors, and what people call them.
var internals = []struct {
	text  *regexp.Regexp
	words string
}{
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): connect: connection refused`), "connection refused by $1"},
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): connect: no such file or directory`), "socket $1 not found"},
	{regexp.MustCompile(`dial (?:tcp|unix)[46]? (\S+): (?:connect: )?`), "connecting to $1: "},
	{regexp.MustCompile(`(?:dial tcp: )?lookup (\S+?)(?: on \S+)?: no such host`), "host $1 not found"},
	{regexp.MustCompile(`(?:read|write) (?:tcp|unix) \S*->(\S+): (?:read: |write: )?`), "connection to $1: "},
	{regexp.MustCompile(`listen (?:tcp|unix)[46]?(?: \S+: bind)?: `), ""},
	{regexp.MustCompile(`open (\S+): no such file or directory`), "file $1 not found"},
	{regexp.MustCompile(`open (\S+): permission denied`), "no permission to open $1"},
	{regexp.MustCompile(`i/o timeout|context deadline exceeded`), "timed out"},
	{regexp.MustCompile(`yaml: unmarshal errors:\n +`), ""},
}

// InPlainWords returns an error's text in one line, without Go's own words.
func InPlainWords(text string) string {
	for _, i := range internals {
		text = i.text.ReplaceAllString(text, i.words)
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
