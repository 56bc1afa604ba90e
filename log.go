package flaked

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logger returns the logger that Config asks for. It never writes to a standard stream.
func (c Config) logger() hclog.Logger {
	switch {
	case c.HCLogger != nil:
		return c.HCLogger
	case c.Logger == nil:
		return hclog.NewNullLogger()
	}
	level := hclog.Info
	if c.Logger.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "flaked", Level: level, Output: io.Discard})
	l.RegisterSink(slogSink{c.Logger})
	return l
}

// slogSink passes lines of hclog on to slog.
type slogSink struct{ to *slog.Logger }

// Accept is part of hclog.SinkAdapter.
func (s slogSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	at := slogLevel(level)
	if !s.to.Enabled(context.Background(), at) {
		return
	}
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 { // a format with its arguments
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.to.With("logger", name).Log(context.Background(), at, msg, args...)
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
