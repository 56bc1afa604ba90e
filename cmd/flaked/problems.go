package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flaked/flaked/clusterview"
)

// problemsError is the error of a command that has printed its output and found problems. The
// heading and the problems follow on standard error.
type problemsError struct {
	heading  string
	problems []clusterview.Problem
}

func (e *problemsError) Error() string { return strings.Join(e.lines(0), "\n") }

// lines returns the heading and a line for each problem. If width is not 0, lines that are longer
// are wrapped.
func (e *problemsError) lines(width int) []string {
	count := "1 problem"
	if n := len(e.problems); n > 1 {
		count = fmt.Sprintf("%d problems, the worst first", n)
	}
	out := []string{e.heading + ": " + count}
	for _, p := range e.problems {
		severity := string(p.Severity) + ": "
		text := clusterview.Clean(p.String())
		if width <= len(severity)+minWrapped {
			out = append(out, severity+text)
			continue
		}
		for i, line := range wrap(text, width-len(severity)) {
			if i > 0 {
				severity = strings.Repeat(" ", len(severity))
			}
			out = append(out, severity+line)
		}
	}
	return out
}

// minWrapped is the least width to which text is wrapped.
const minWrapped = 30

// degraded returns the error for these problems, nil if there are none.
func degraded(problems []clusterview.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &codedError{exitDegraded, &problemsError{"degraded", problems}}
}

// wrapped returns the problems that err names, for a terminal of so many columns. 0 means
// unlimited. If err names none, it returns text.
func wrapped(err error, text string, columns int) string {
	var found *problemsError
	if errors.As(err, &found) {
		return strings.Join(found.lines(columns), "\n")
	}
	return text
}

// size returns the rows and columns of a terminal, 0 if unknown, and whether w is a terminal.
func size(w io.Writer) (rows, columns int, terminal bool) {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return 0, 0, false
	}
	rows, columns = terminalSize(f)
	return rows, columns, true
}
