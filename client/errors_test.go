package client

import (
	"fmt"
	"testing"

	"github.com/flaked/flaked/internal/dialog"
)

// A node whose layout is used up refuses everything until somebody acts. A sequence that is used up concerns
// nothing else.
func TestLasting(t *testing.T) {
	for line, want := range map[string]bool{
		"-EXHAUSTED the layout's time field is used up":                  true,
		"-EXHAUSTED reason=exhausted the sequence has reached its max 9": false,
		"-NOAUTH":                            true,
		"-NOTREADY starting reason=starting": false,
	} {
		if err := fmt.Errorf("x: %w", dialog.Refusal("a", line)); lasting(err) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}
