package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestTraceWritesALineForEachStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	t.Setenv(traceEnv, path)
	trace := newTrace(hclog.NewNullLogger())
	trace.Step("acquired", "worker", 7, "confirmed", false, "nonce", "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^boot=\d+ run=([A-Z2-7]{8}) step=start pid=\d+ version=\S+
boot=\d+ run=[A-Z2-7]{8} step=acquired worker=7 confirmed=false nonce=
$`)
	if !want.Match(text) {
		t.Errorf("%s", text)
	}
}

func TestNoTraceUnlessAsked(t *testing.T) {
	t.Setenv(traceEnv, "")
	if newTrace(hclog.NewNullLogger()) != nil {
		t.Error("a trace")
	}
	t.Setenv(traceEnv, filepath.Join(t.TempDir(), "missing", "trace"))
	newTrace(hclog.NewNullLogger()).Step("acquired") // the node goes on without a trace
}

// A node goes on if its trace cannot be written.
func TestTraceThatCannotBeWrittenEnds(t *testing.T) {
	for name, write := range map[string]func(string) error{
		"full":   func(string) error { return errors.New("no space left on device") },
		"stalls": func(string) error { select {} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := make(chan bool, 2)
			var said strings.Builder
			log := hclog.New(&hclog.LoggerOptions{Output: &said})
			tr := &trace{log: log, boot: func() int64 { return 1 }}
			tr.write = func(line string) error { calls <- true; return write(line) }
			tr.step("acquired")
			tr.step("beat")
			if len(calls) != 1 || !strings.Contains(said.String(), "the trace ends") {
				t.Errorf("%d calls: %s", len(calls), said.String())
			}
		})
	}
}
