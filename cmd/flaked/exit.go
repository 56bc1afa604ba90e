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
	// exitOK: done, or all is well.
	exitOK = 0
	// exitFailure: it was tried and did not work, or the answer is no: a node
	// that is not ready, an ID that is none, a cluster that is not there.
	exitFailure = 1
	// exitUsage: the command line, the environment or the configuration file is
	// wrong. Nothing was done.
	exitUsage = 2
	// exitUnreachable: ZooKeeper, or the node asked, does not answer.
	exitUnreachable = 3
	// exitDegraded: it works, and something needs looking after. What was asked
	// for has been printed.
	exitDegraded = 4
)

// codedError is an error with the exit code that it ends the process with.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// exitWith is an error that ends the process with this code.
func exitWith(code int, format string, a ...any) error {
	return &codedError{code, fmt.Errorf(format, a...)}
}

// usageError is an error in how the command was called.
func usageError(format string, a ...any) error { return exitWith(exitUsage, format, a...) }

// withHelp has a usage error point to the help of the command.
func withHelp(c *cli.Context, err error) error {
	var coded *codedError
	if !errors.As(err, &coded) || coded.code != exitUsage {
		return err
	}
	return usageError("%w (see %s --help)", err, c.Command.HelpName)
}

// explain turns what a command returned into an exit code and a line for
// people. No line for no error.
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

// packages are the prefixes of our own errors: they say which package it was,
// and people who call a command do not ask that.
var packages = regexp.MustCompile(`(^|: |\n|\()(?:(?:coordinator|zkstore|worker|localcache|lineproto|timeguard|node|admin|load): )+`)

// plain is an error's text in one line, without the packages' names.
func plain(text string) string {
	text = packages.ReplaceAllString(text, "$1")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
