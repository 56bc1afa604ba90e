package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/zkstore"
)

// Exit codes of every command. Scripts rely on them.
const (
	// exitOK means that the command has done its work, or that all is well.
	exitOK = 0
	// exitFailure means that the command failed, or that the answer is no: a node that is not
	// ready, an invalid ID, a cluster that does not exist.
	exitFailure = 1
	// exitUsage means that the command line, the environment or the configuration file is
	// wrong. Nothing was done.
	exitUsage = 2
	// exitUnreachable means that ZooKeeper, or the node asked, does not answer.
	exitUnreachable = 3
	// exitDegraded means that something needs attention. The output is complete.
	exitDegraded = 4
)

// codedError is an error with the exit code that it ends the process with.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// exitWith returns an error that ends the process with this code.
func exitWith(code int, format string, a ...any) error {
	return &codedError{code, fmt.Errorf(format, a...)}
}

// usageError returns an error for a command that was called wrongly.
func usageError(format string, a ...any) error { return exitWith(exitUsage, format, a...) }

// withHelp adds a pointer to the command's help to a usage error.
func withHelp(c *cli.Context, err error) error {
	var coded *codedError
	if !errors.As(err, &coded) || coded.code != exitUsage {
		return err
	}
	return usageError("%w (see %s --help)", err, c.Command.HelpName)
}

// explain returns the exit code and the line to print for the error that a command returned.
// The line is "" if err is nil.
func explain(ctx context.Context, err error) (int, string) {
	if err == nil {
		return exitOK, ""
	}
	code := exitFailure
	var coded *codedError
	switch {
	case errors.As(err, &coded):
		code = coded.code
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, zkstore.ErrUnreachable)):
		return exitFailure, "interrupted"
	case errors.Is(err, zkstore.ErrUnreachable):
		code = exitUnreachable
	}
	return code, plain(advised(err))
}

// packages matches the prefixes that flaked's packages put before their errors. Users of a
// command do not know these packages.
var packages = regexp.MustCompile(`(^|: |\n|\()(?:(?:coordinator|zkstore|worker|localcache|lineproto|timeguard|node|admin|load): )+`)

// plain returns an error's text in one line, without the prefixes of packages.
func plain(text string) string {
	text = packages.ReplaceAllString(text, "$1")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
