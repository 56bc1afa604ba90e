package ordered

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// quiet is a sequence that does nothing.
type quiet struct{}

func (quiet) KnowWritten(mode.Write, int64) {}
func (quiet) WakeAt(int64)                  {}

// A node that has not read who the owner is tells clients which node answers.
func TestClientsLearnWhichNodeAnswers(t *testing.T) {
	m := NewSection(&mode.Series{
		Name: "ticks", Host: quiet{}, Known: &record.Record{Mode: record.Ordered},
		Values: sequence.NewValues(sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, sequence.Key{}),
	}, new(Shared))
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=- ") {
		t.Error(line)
	}
	m.note(&flight{address: "b:7609"}, nil, 1, Answer{1, "taker"}, nil)
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=b:7609 ") {
		t.Error(line)
	}
	m.Known.Owner, m.Known.Address = "nonce", "c:7609"
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=c:7609 ") {
		t.Error(line)
	}
}
