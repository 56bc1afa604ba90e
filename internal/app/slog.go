package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/ops/host/logqueue"
)

// Slog returns a logger that passes its lines on to another one, and never writes to a standard stream. stop passes on
// the lines that wait, and ends the goroutine behind the logger. After 5 s stop gives up, and lines that still wait are
// lost.
func Slog(to *slog.Logger) (l hclog.Logger, stop func()) {
	level := hclog.Info
	if to.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "flaked", Level: level, Output: io.Discard})
	sink := newSlogSink(to)
	intercept.RegisterSink(sink)
	return intercept, func() { sink.lines.Close(closeLogTime) }
}

// closeLogTime is the longest time that stop waits for a slow log handler.
const closeLogTime = 5 * time.Second

// slogSink passes lines of hclog on to slog. A handler may call the node: the queue calls it
// without the node's locks.
type slogSink struct {
	lines *logqueue.Queue[line]
}

// line is a record of the logger with this name.
type line struct {
	name   string
	record slog.Record
}

func newSlogSink(to *slog.Logger) slogSink {
	return slogSink{logqueue.New(func(l line) {
		ctx, h := context.Background(), to.With("logger", l.name).Handler()
		if h.Enabled(ctx, l.record.Level) {
			_ = h.Handle(ctx, l.record)
		}
	}, func(lost int64) {
		to.Warn("the log handler was too slow, lines are missing", "lines_lost", lost)
	})}
}

// Accept is part of hclog.SinkAdapter. It never blocks.
func (s slogSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 { // a format with its arguments
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	r := slog.NewRecord(time.Now(), slogLevel(level), msg, 0)
	r.Add(args...)
	s.lines.Put(line{name, r})
}

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Trace, hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	}
	return slog.LevelInfo
}
