// Package figures is what both benchmarks write their results down with: `make
// bench` and `make bench-generators`.
package figures

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Median is false when there are no values. It sorts them.
func Median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// Thousands is a number with its thousands apart.
func Thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Table is one in Markdown. The first row is its head.
type Table struct{ rows [][]string }

// Row adds one.
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

// Between replaces what stands between the markers of that name in a file:
// <!-- name:begin --> and <!-- name:end -->.
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
