package seq

import (
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

// The words after reason= in refusals of sequences, each with its code.
func TestFrozenReasons(t *testing.T) {
	var names []string
	for _, r := range reasons {
		names = append(names, string(codes[r])+" "+string(r))
	}
	upgrade.Names(t, "reasons", names)
}
