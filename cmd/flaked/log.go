package main

import (
	"errors"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
)

// newLogger returns the logger that logFlags ask for, with w as its output. By default it
// writes text to a terminal and JSON elsewhere.
func newLogger(c *cli.Context, w io.Writer) (hclog.InterceptLogger, error) {
	level := hclog.LevelFromString(c.String("log-level"))
	if level == hclog.NoLevel {
		return nil, usageError("--log-level: %q is not trace, debug, info, warn, error or off", c.String("log-level"))
	}
	opts := &hclog.LoggerOptions{Name: "flaked", Level: level, Output: w, TimeFormat: "2006-01-02T15:04:05.000Z07:00"}
	switch format := c.String("log-format"); format {
	case "json", "auto", "text":
		opts.JSONFormat = logsJSON(format, w)
	default:
		return nil, usageError("--log-format: %q is not auto, text or json", format)
	}
	if !opts.JSONFormat && colours(w) {
		opts.Color, opts.ColorHeaderOnly = hclog.ForceColor, true
	}
	return hclog.NewInterceptLogger(opts), nil
}

// logsJSON reports whether the log on w is in JSON, for a value of --log-format.
func logsJSON(format string, w io.Writer) bool {
	return format == "json" || format == "auto" && !isTerminal(w)
}

// errLogged means that the log has the error that a command ended with.
var errLogged = errors.New("see the log")

// logged writes the error that a command ends with to a log in JSON, so that whatever reads the log
// finds it there. It returns an error with the same exit code. If err is nil, or the log is
// for people, it returns err.
func logged(c *cli.Context, log hclog.Logger, err error) error {
	if err == nil || !logsJSON(c.String("log-format"), c.App.ErrWriter) || !log.IsError() {
		return err
	}
	code, text := explain(c.Context, withHelp(c, err))
	log.Error(text, "exit_code", code)
	return &codedError{code, errLogged}
}

// isTerminal reports whether a reader or a writer is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// colours reports whether to use colours: on a terminal that has them, unless NO_COLOR is set
// (https://no-color.org).
func colours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
