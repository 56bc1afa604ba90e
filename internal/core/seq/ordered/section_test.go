package ordered

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
)

// quiet is a sequence that does nothing.
type quiet struct{}

func (quiet) KnowWritten(mode.Write, int64) {}
func (quiet) WakeAt(int64)                  {}

// A request and a read end an ownership whose lease has ended, also one that is being given back.
func TestLeaseThatHasEndedEndsTheOwnership(t *testing.T) {
	const until = int64(time.Minute)
	r := record.Record{Mode: record.Ordered, Owner: "o", Nonce: "o", Incarnation: 1}
	r.Ceiling = 1000
	for name, look := range map[string]func(m *Section, now int64){
		"a request": func(m *Section, now int64) {
			m.shared.Now = func() int64 { return now }
			_, _, _ = m.Serve(mode.Request{Wait: new(sequence.Wait), N: 5}, now, now, nil)
		},
		"a read": func(m *Section, now int64) { m.Saw(seen("o", 1, 3, 0), &r, mode.Situation{AtMost: now}) },
	} {
		for _, ending := range []bool{false, true} {
			for now, over := range map[int64]bool{until - 1: false, until: true} {
				m := NewSection(&mode.Series{Name: "ticks", Host: quiet{}, Known: &r}, new(Shared))
				m.lease = lease{owner: "o", until: until, ending: ending}
				look(m, now)
				if m.Owns() == over || over != (m.lapses == 1) {
					t.Errorf("%s, ending: %v, lease over: %v: owns %v, %d lapses", name, ending, over, m.Owns(), m.lapses)
				}
			}
		}
	}
}

// A node that has not read who the owner is tells clients which node answers.
func TestClientsLearnWhichNodeAnswers(t *testing.T) {
	m := NewSection(&mode.Series{
		Name: "ticks", Host: quiet{}, Known: &record.Record{Mode: record.Ordered},
		Values: sequence.NewValues(sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, sequence.Key{}),
	}, new(Shared))
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=- ") {
		t.Error(line)
	}
	m.noteOutcome(&flight{address: "b:7609"}, nil, Answer{1, "taker"}, nil)
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=b:7609 ") {
		t.Error(line)
	}
	m.Known.Owner, m.Known.Address = "nonce", "c:7609"
	if line := m.Report(new(mode.Use)); !strings.HasPrefix(line, "owner=c:7609 ") {
		t.Error(line)
	}
}

// SEQ, which wants no value, waits together with requests. Only these make the node the owner, of a block that one of
// them can use.
func TestOwnerIsNeededForValuesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		waiting []int64
		credit  int64
		lacks   bool
		taken   int64 // 0: the node does not become the owner
	}{
		"SEQ":                                {waiting: []int64{0}, credit: 5},
		"SEQ without credit":                 {waiting: []int64{0, 0}},
		"SEQ and a request":                  {waiting: []int64{0, 3, 4}, credit: 4, lacks: true, taken: 4},
		"SEQ and a request, and some credit": {waiting: []int64{0, 3}, credit: 2, lacks: true},
		"SEQ and a request without credit":   {waiting: []int64{0, 1}, lacks: true},
	} {
		shared := new(Shared)
		clock := timeguard.NewElapsed(memcluster.New(func() int64 { return 1e9 }).Machine())
		shared.elapsed, shared.Now = clock, func() int64 { return clock.Now().Most }
		r := record.Record{Mode: record.Ordered, Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}}
		r.Ceiling, r.HardCeiling, r.Block, r.Credit = 5, 5, 1, c.credit
		m := NewSection(&mode.Series{Name: "ticks", Host: quiet{}, Known: &r}, shared)
		for _, n := range c.waiting {
			m.Waiting = append(m.Waiting, mode.Request{Wait: new(sequence.Wait), N: n})
		}
		v := mode.View{Snapshot: record.Snapshot{Record: &r, Cluster: &record.Cluster{UUID: "c"}, State: &record.State{}}}
		w, taken := m.NextWrite(v, mode.Situation{Nonce: "o"}), int64(0)
		if w != nil {
			taken = w.Block.Len()
		}
		if m.Lacks() != c.lacks || taken != c.taken || (w != nil) != (c.taken > 0) {
			t.Errorf("%s: lacks %v, takes %d by %+v", name, m.Lacks(), taken, w)
		}
	}
}

// The text for a client that has waited for an owner in vain says what is known of that owner.
func TestTextOfAnOwnerThatDoesNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		owner, address string
		text           string
	}{
		"another node":              {"o", "b:1", "it does not answer"},
		"another, without address":  {"o", "", "has no address"},
		"this node's last process":  {"o", "a:1", "its last process owned the sequence until a moment ago, or another node"},
		"an owner that may be lost": {record.LostOwner, "", "did not give this node any values in time"},
	} {
		shared := &Shared{ownAddress: "a:1", Now: func() int64 { return int64(time.Minute) }}
		r := record.Record{Mode: record.Ordered, Owner: c.owner, Address: c.address}
		r.Ceiling = 1000
		m := NewSection(&mode.Series{Name: "ticks", Host: quiet{}, Known: &r}, shared)
		_, _, err := m.Serve(mode.Request{Wait: &sequence.Wait{Since: 1}, N: 1}, 0, 0, nil)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An operator raises the next value above all that the owner holds. Until the owner takes more it holds nothing, and it
// does not ask again and again.
func TestNextValueIsRaisedAboveWhatTheOwnerHolds(t *testing.T) {
	r := record.Record{Mode: record.Ordered, RaisedTo: 300, Next: 300, Owner: "o", Nonce: "o"}
	m := NewSection(&mode.Series{Name: "ticks", Host: quiet{}, Known: &r}, new(Shared))
	m.lease = lease{owner: "o", until: int64(time.Minute)}
	m.counters.begin(positions.Block{First: 100, End: 200})
	v := mode.View{Snapshot: record.Snapshot{Record: &r, Cluster: &record.Cluster{UUID: "c"}}}
	m.Saw(v, &r, mode.Situation{AtMost: 1})
	u := new(mode.Use)
	if m.Report(u); u.Held != 0 {
		t.Errorf("holds %d values", u.Held)
	}
	m.refill(v, mode.Situation{AtMost: 1, Unconfirmed: time.Second}, false)
	if m.counters.needsRefill() {
		t.Error("it asks again before its next write")
	}
}
