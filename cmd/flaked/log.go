package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/ops/host/logqueue"
)

// newLogger returns the logger that logFlags ask for, with w as its output. closeLog writes the lines that wait, for
// 2 s at most, and ends the log.
func newLogger(c *cli.Context, w io.Writer) (log hclog.InterceptLogger, closeLog func(), err error) {
	opts, err := logOptions(c, w)
	if err != nil {
		return nil, nil, err
	}
	lines := logqueue.New(func(line []byte) { _, _ = w.Write(line) }, func(lost int64) {
		log.Warn("whatever reads this log was too slow, lines are missing", "lines_lost", lost)
	})
	opts.Output = lineWriter{lines}
	if !opts.JSONFormat && toJournal(w) {
		opts.DisableTime = true // the journal has it
		opts.Output = journalWriter{opts.Output}
	}
	log = hclog.NewInterceptLogger(opts)
	return log, func() { lines.Close(2 * time.Second) }, nil // if nobody reads them
}

// lineWriter puts into a queue what is written to it. hclog writes whole lines.
type lineWriter struct {
	lines *logqueue.Queue[[]byte]
}

func (w lineWriter) Write(line []byte) (int, error) {
	w.lines.Put(bytes.Clone(line)) // hclog writes the next line into the same memory
	return len(line), nil
}

// logOptions returns the options that logFlags ask for. By default the log is text on a terminal
// and in systemd's journal, and JSON elsewhere.
func logOptions(c *cli.Context, w io.Writer) (*hclog.LoggerOptions, error) {
	level := hclog.LevelFromString(c.String("log-level"))
	if level == hclog.NoLevel {
		return nil, usageError("--log-level: %q is not trace, debug, info, warn, error or off", c.String("log-level"))
	}
	format := c.String("log-format")
	if !slices.Contains([]string{"auto", "text", "json"}, format) {
		return nil, usageError("--log-format: %q is not auto, text or json", format)
	}
	return &hclog.LoggerOptions{Name: "flaked", Level: level, TimeFormat: "2006-01-02T15:04:05.000Z07:00",
		JSONFormat: logsJSON(format, w)}, nil
}

// logsJSON reports whether the log on w is in JSON, for a value of --log-format.
func logsJSON(format string, w io.Writer) bool {
	return format == "json" || format == "auto" && !isTerminal(w) && !toJournal(w)
}

// reportInLog writes a command's error to a log in JSON, so that programs that read the log find it there. It then
// returns another error with the same exit code. If the log is no JSON, it returns err.
func reportInLog(c *cli.Context, log hclog.Logger, err error) error {
	if err == nil || !logsJSON(c.String("log-format"), c.App.ErrWriter) || !log.IsError() {
		return err
	}
	code, text := exitCodeAndText(c.Context, withHelp(c, err))
	log.Error(text, "exit_code", code)
	return &codedError{code, errReported}
}

// isTerminal reports whether a reader or a writer is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
