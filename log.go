package flaked

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"
)

// logger returns the logger that Config asks for. stop passes on the lines that wait, and ends the
// goroutine behind the logger. The logger never writes to a standard stream.
func (c Config) logger() (l hclog.Logger, stop func()) {
	switch {
	case c.HCLogger != nil:
		return c.HCLogger, func() {}
	case c.Logger == nil:
		return hclog.NewNullLogger(), func() {}
	}
	level := hclog.Info
	if c.Logger.Enabled(context.Background(), slog.LevelDebug) {
		level = hclog.Debug
	}
	intercept := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "flaked", Level: level, Output: io.Discard})
	sink := &slogSink{to: c.Logger, lines: make(chan line, maxLines), end: make(chan struct{})}
	intercept.RegisterSink(sink)
	var running sync.WaitGroup
	running.Go(sink.run)
	return intercept, func() {
		close(sink.end)
		running.Wait()
	}
}

// maxLines is the most lines that wait for the program's handler.
const maxLines = 1024

// slogSink passes lines of hclog on to slog, from a goroutine of its own. The node holds locks
// while it logs. A handler that is slow must not stop the node, and a handler that calls the node
// must not wait for those locks.
type slogSink struct {
	to    *slog.Logger
	lines chan line
	lost  atomic.Int64 // lines that found no room
	end   chan struct{}
}

// line is a record of the logger with this name.
type line struct {
	name   string
	record slog.Record
}

// Accept is part of hclog.SinkAdapter. It never blocks.
func (s *slogSink) Accept(name string, level hclog.Level, msg string, args ...any) {
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 { // a format with its arguments
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	r := slog.NewRecord(time.Now(), slogLevel(level), msg, 0)
	r.Add(args...)
	select {
	case s.lines <- line{name, r}:
	default:
		s.lost.Inc()
	}
}

// run hands the lines to the handler until end is closed and no line waits.
func (s *slogSink) run() {
	for {
		select {
		case l := <-s.lines:
			s.pass(l)
		case <-s.end:
			for len(s.lines) > 0 {
				s.pass(<-s.lines)
			}
			return
		}
	}
}

func (s *slogSink) pass(l line) {
	ctx, h := context.Background(), s.to.With("logger", l.name).Handler()
	if h.Enabled(ctx, l.record.Level) {
		_ = h.Handle(ctx, l.record)
	}
	if lost := s.lost.Swap(0); lost > 0 {
		s.to.Warn("the log handler was too slow, lines are missing", "lines_lost", lost)
	}
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
