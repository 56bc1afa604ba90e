package seq

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// A node that has not read who the owner is tells clients which node answers.
func TestClientsLearnWhichNodeAnswers(t *testing.T) {
	m := newOrdered(&series{name: "ticks", known: &record.Record{Mode: record.Ordered},
		relay: &relay{wakeAt: func(*series, int64) {}}})
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
