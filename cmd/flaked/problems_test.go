package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/clusterview"
)

// Without a terminal each problem is one line. On a terminal, long lines continue below the text.
func TestProblemLines(t *testing.T) {
	e := &problemsError{"degraded", []clusterview.Problem{
		{Severity: clusterview.Critical, Text: "worker 3 (ids-3) refuses to serve (clock-wrong)", Advice: "Check with chronyc tracking, then set the clock right. The node then serves again by itself."},
		{Severity: clusterview.Warning, Text: "3 of 64 workers are free", Advice: "Stop nodes."},
	}}
	for _, row := range []struct {
		width int
		want  []string
	}{
		{0, []string{
			"degraded: 2 problems, the worst first",
			"critical: worker 3 (ids-3) refuses to serve (clock-wrong). Check with chronyc tracking, then set the clock right. The node then serves again by itself.",
			"warning: 3 of 64 workers are free. Stop nodes.",
		}},
		{80, []string{
			"degraded: 2 problems, the worst first",
			"critical: worker 3 (ids-3) refuses to serve (clock-wrong). Check with chronyc",
			"          tracking, then set the clock right. The node then serves again by",
			"          itself.",
			"warning: 3 of 64 workers are free. Stop nodes.",
		}},
	} {
		if got := e.lines(row.width); !slices.Equal(got, row.want) {
			t.Errorf("at %d columns:\n%s\nwant\n%s", row.width, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}
