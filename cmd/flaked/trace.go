package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// traceEnv names a file to which a node appends the steps of the protocol: see docs/testing.md. It is for the tests
// of flaked.
const traceEnv = "FLAKED_TRACE"

// traceStall is how long a step waits for its line to be written. It waits once more, because the process may have been
// stopped meanwhile. Then the trace ends, and the node goes on without it.
const traceStall = 500 * time.Millisecond

// trace is a file of steps, one line each.
type trace struct {
	log  hclog.Logger
	boot func() int64
	run  string // names the process

	mu    sync.Mutex // guards the fields below
	write func(line string) error
	ended bool
}

// newTrace returns the trace that the environment asks for, or nil.
func newTrace(log hclog.Logger) coordinator.Trace {
	path := os.Getenv(traceEnv)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		log.Error("there is no trace", "error", err)
		return nil
	}
	t := &trace{log: log, boot: timeguard.System().Boot, run: rand.Text()[:8]}
	t.write = func(line string) error { _, err := file.WriteString(line); return err }
	t.step("start", "pid", os.Getpid(), "version", version)
	return t.step
}

// step writes a line. A kill -9 later does not undo that.
func (t *trace) step(name string, about ...any) {
	if err := t.append(name, about); err != nil {
		t.log.Error("the trace ends, because it cannot be written", "error", err)
	}
}

// append returns an error if it ends the trace.
func (t *trace) append(name string, about []any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	var line strings.Builder
	fmt.Fprintf(&line, "boot=%d run=%s step=%s", t.boot(), t.run, name)
	for k := 0; k+1 < len(about); k += 2 {
		fmt.Fprintf(&line, " %v=%v", about[k], about[k+1])
	}
	line.WriteByte('\n')
	written := make(chan error, 1)
	go func() { written <- t.write(line.String()) }()
	for range 2 {
		select {
		case err := <-written:
			t.ended = err != nil
			return err
		case <-time.After(traceStall):
		}
	}
	t.ended = true
	return errors.New("the disk stalls")
}
