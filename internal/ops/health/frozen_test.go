package health

import (
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

// The words by which alerts and scripts know problems and refusals.
func TestFrozenCauses(t *testing.T) {
	var names []string
	for _, p := range AllProblems {
		names = append(names, string(p.Severity)+" "+p.Cause)
	}
	upgrade.Names(t, "causes", names)
}
