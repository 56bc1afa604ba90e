// Package words formats values, names and errors for people.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

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

// Grouped formats a whole number with commas between the thousands: "1,234,567".
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// mostListed is the most names that List shows.
const mostListed = 5

// List joins the first names, and says how many more there are. all is the number of all names, of which names may be
// a part.
func List(names []string, all int) string {
	shown := names[:min(mostListed, len(names))]
	text := strings.Join(shown, ", ")
	if all > len(shown) {
		text += fmt.Sprintf(" and %d more", all-len(shown))
	}
	return text
}

// Short is Clean, cut after 64 characters and marked with "...".
func Short(s string) string {
	const most = 64
	s = Clean(s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}

// Ranges formats numbers, which must ascend, and joins those that follow each other: 0-3, 7.
func Ranges(numbers []int) (parts []string) {
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

// WorkerNumbers names workers: worker 3, or workers 1-2, 7. Their numbers must ascend.
func WorkerNumbers(workers []int) string {
	word := "worker "
	if len(workers) > 1 {
		word = "workers "
	}
	return word + strings.Join(Ranges(workers), ", ")
}

// Count returns a number with thousands separated, and a noun in singular or plural.
func Count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Grouped(n) + " " + noun
}

// PerSecond returns a number of values or requests a second.
func PerSecond(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0/s"
	case perSecond < 0.05:
		return "<0.1/s"
	case perSecond < 10:
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return Grouped(int64(math.Round(perSecond))) + "/s"
}
