package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

// Exit codes of every command. Scripts rely on them.
const (
	exitOK          = 0 // done, or all is well
	exitFailure     = 1 // failed, or the answer is no: a node that is not ready, an invalid ID, no such cluster
	exitUsage       = 2 // the command line, the environment or the file is wrong, and nothing was done
	exitUnreachable = 3 // ZooKeeper, or the node asked, does not answer
	exitDegraded    = 4 // something needs attention, and the output is complete
)

// codedError is an error with the exit code that it ends the process with.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// errReported means that the log, or the output, says already what a command ended with.
var errReported = errors.New("see the log")

// exitError returns an error that ends the process with this code.
func exitError(code int, format string, a ...any) error {
	return &codedError{code, fmt.Errorf(format, a...)}
}

// failure returns the error of a command that failed, or whose answer is no.
func failure(format string, a ...any) error { return exitError(exitFailure, format, a...) }

// usageError returns an error for a command that was called wrongly.
func usageError(format string, a ...any) error { return exitError(exitUsage, format, a...) }

// unreadableError returns the usage error for a file that a flag names and that cannot be read.
func unreadableError(flag string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError("%s: %w. Create it or correct the path", flag, err)
	case errors.Is(err, fs.ErrPermission):
		return usageError("%s: %w. Check its owner and mode", flag, err)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, syscall.EISDIR) {
		return usageError("%s: %s is a directory. Give a file", flag, e.Path)
	}
	return usageError("%s: %w", flag, err)
}

// withHelp adds a pointer to the command's help to a usage error.
func withHelp(c *cli.Context, err error) error {
	if coded, ok := errors.AsType[*codedError](err); !ok || coded.code != exitUsage {
		return err
	}
	return usageError("%w. See `%s --help`", err, c.Command.HelpName)
}

// exitCodeAndText returns the exit code and the text to print for the error that a command returned.
// The text is "" if err is nil, or if the log or the output has said it.
func exitCodeAndText(ctx context.Context, err error) (int, string) {
	if err == nil {
		return exitOK, ""
	}
	code := exitFailure
	coded, isCoded := errors.AsType[*codedError](err)
	_, silent := errors.AsType[*poll.SilentError](err)
	switch {
	case isCoded:
		code = coded.code
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnreachable)):
		return exitFailure, "interrupted"
	case silent, errors.Is(err, store.ErrUnreachable):
		code = exitUnreachable
	}
	if errors.Is(err, errReported) {
		return code, ""
	}
	return code, withFullStop(words.PlainError(withAdvice(err)))
}

// nextSentence matches the end of a sentence and the beginning of the next one.
var nextSentence = regexp.MustCompile("[.?] [A-Z`]")

// withFullStop returns text with a full stop at its end, if it has more than one sentence.
func withFullStop(text string) string {
	if !nextSentence.MatchString(text) || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
