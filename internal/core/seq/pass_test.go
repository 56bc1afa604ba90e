package seq

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// quiet is a sequence that does nothing.
type quiet struct{}

func (quiet) knowWritten(blockWrite, int64) {}
func (quiet) wakeAt(int64)                  {}

// A node that has not read who the owner is tells clients which node answers.
func TestClientsLearnWhichNodeAnswers(t *testing.T) {
	m := newOrdered(&base{name: "ticks", known: &record.Record{Mode: record.Ordered}, keeper: new(quiet)}, new(relay))
	m.values = sequence.NewValues(plain(), sequence.Key{})
	if line := m.report(new(Use)); !strings.HasPrefix(line, "owner=- ") {
		t.Error(line)
	}
	m.note(&flight{address: "b:7609"}, nil, 1, Answer{1, "taker"}, nil)
	if line := m.report(new(Use)); !strings.HasPrefix(line, "owner=b:7609 ") {
		t.Error(line)
	}
	m.known.Owner, m.known.Address = "nonce", "c:7609"
	if line := m.report(new(Use)); !strings.HasPrefix(line, "owner=c:7609 ") {
		t.Error(line)
	}
}
