package health

import (
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

// The words by which alerts and scripts know problems and refusals.
func TestFrozenCauses(t *testing.T) {
	var names []string
	for _, r := range table {
		names = append(names, string(r.severity)+" "+r.cause)
	}
	upgrade.Names(t, "causes", names)
}
