package main

import (
	"fmt"

	"github.com/flaked/flaked/internal/ops/view"
)

// problemsError is the error of a command that has printed its output and found problems. The
// heading and the problems follow on standard error.
type problemsError struct {
	heading  string
	problems []view.Problem
}

func (e *problemsError) Error() string {
	text := e.heading + ": 1 problem"
	if n := len(e.problems); n > 1 {
		text = fmt.Sprintf("%s: %d problems, the worst first", e.heading, n)
	}
	for _, p := range e.problems {
		text += "\n" + string(p.Severity) + ": " + view.Clean(p.String())
	}
	return text
}

// degraded returns the error for these problems, nil if there are none.
func degraded(problems []view.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &codedError{exitDegraded, &problemsError{"degraded", problems}}
}
