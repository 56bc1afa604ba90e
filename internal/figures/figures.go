// Package figures formats the results of the benchmarks under bench (`make bench`, `make
// bench-generators`, `make bench-nodes`) and describes the machine that they ran on. It also
// has the flags that they share.
package figures

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Median returns the median of values, or false if values is empty. It sorts values in place.
func Median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// Rounds holds the measurements of one contender in one case, by round.
type Rounds[T any] map[int]T

// Median returns the median of a metric, or false without measurements.
func (r Rounds[T]) Median(metric func(T) float64) (float64, bool) {
	var values []float64
	for _, m := range r {
		values = append(values, metric(m))
	}
	return Median(values)
}

// Ratio returns the median of r's figure divided by others' figure of the same round, or
// false if they have no round in common. The machine's speed varies between rounds.
func (r Rounds[T]) Ratio(others Rounds[T], metric func(T) float64) (float64, bool) {
	var values []float64
	for round, m := range r {
		if other, ok := others[round]; ok && metric(other) > 0 {
			values = append(values, metric(m)/metric(other))
		}
	}
	return Median(values)
}

// Thousands formats v as a whole number with commas: 4,096,000. v must not be negative.
func Thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Table builds a Markdown table. Its first row is the header.
type Table struct{ rows [][]string }

// Row appends a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *Table) String() string {
	var b strings.Builder
	for i, cells := range t.rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

// Between replaces the text in the file at path between the markers <!-- name:begin --> and
// <!-- name:end -->. It returns an error if the markers are missing or out of order.
func Between(path, name, text string) error {
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: %s and %s are not in it", path, begin, end)
	}
	return os.WriteFile(path, []byte(head+begin+"\n\n"+text+"\n"+end+tail), 0o644)
}
