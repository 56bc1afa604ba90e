package campaign

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/flaked/flaked/internal/check/trace"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
)

// traceFile is the trace of all processes of the machine.
func (m *machine) traceFile() string { return strings.TrimSuffix(m.logFile, ".log") + ".trace" }

// tracePutBack notes in the trace that an old state is put back (limit 2 of docs/safety.md), and when it was copied, ns
// of the boot clock.
func (m *machine) tracePutBack(copied int64) error {
	file, err := os.OpenFile(m.traceFile(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, "boot=%d run=- step=put-back copied=%d\n", timeguard.System().Boot(), copied)
	return err
}

// judgeTraces judges the traces of all nodes, adds findings, and returns how much was judged.
func (c *campaign) judgeTraces() (report string, err error) {
	traces := map[string]io.Reader{}
	for _, m := range c.machines {
		file, err := os.Open(m.traceFile())
		if err != nil {
			return "", err
		}
		defer file.Close()
		traces[filepath.Base(m.traceFile())] = file
	}
	v, err := trace.Judge(traces, trace.Cluster{
		Lease: *chaosLease, Confirm: confirm, Grace: min(limits.ClocksAgree, *chaosLease/limits.GraceParts), Cooldown: limits.Cooldown,
	})
	if err != nil {
		return "", err
	}
	for _, wrong := range v.Violations {
		c.wrong = append(c.wrong, "traces: "+wrong.String())
	}
	return v.String(), nil
}
