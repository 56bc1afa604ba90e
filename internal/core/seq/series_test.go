package seq

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// usual returns a record with a ceiling of 1000 a second, of which 5000 positions may be taken at time 0.
// change changes it.
func usual(change func(*record.Record)) record.Record {
	r := record.Record{
		ID: "id", Map: sequence.Map{Start: 1, Increment: 1, Max: 1_000_000_000}, Settings: settings(1000),
		Next: 100, Credit: 5000, WriteCount: 10, Nonce: "nonce", Incarnation: 1,
	}
	if change != nil {
		change(&r)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

const second = int64(time.Second)

// owner returns a series with a record and the positions from 0 to n-1.
func owner(n int64) *series {
	r := usual(func(r *record.Record) { r.Next = n })
	s := knowing(r)
	if m := s.segment(); n > 0 {
		m.lastBlock, m.lastIncarnation = positions.Block{End: n}, r.Incarnation
		m.stock.Add(m.lastBlock)
	}
	return s
}

func TestTake(t *testing.T) {
	inTwo := func(s *series) { s.segment().stock.Add(positions.Block{First: 200, End: 250}) }
	refusal := &record.Refusal{Reason: record.CeilingReached}
	for name, c := range map[string]takeCase{
		"enough in stock":                   {n: 100, now: second},
		"not enough in stock":               {n: 101, now: second, want: "waits"},
		"more than the ceiling ever allows": {n: 10_001, now: second, want: string(record.TooMany)},
		"nothing is known": {change: func(s *series) { s.clearRecord(longAgoNs) }, n: 1, now: second,
			want: "waits"},
		"it was absent a second ago": {change: func(s *series) { s.clearRecord(second) }, n: 1, now: 2 * second,
			want: string(record.NoSequence)},
		"it was absent long ago": {change: func(s *series) { s.clearRecord(second) }, n: 1, now: 4 * second,
			want: "waits"},
		"it is deleted": {change: func(s *series) { s.Known.DeletedAt = 1 }, n: 1,
			now: second, want: string(record.NoSequence)},
		"others wait":                    {change: wait(1, false), n: 1, now: second, want: "waits"},
		"others wait, and it has waited": {change: wait(1, false), since: 1, n: 1, now: second},
		"at the end of the hold":         {n: 1, now: 600*second - 1},
		"after the hold":                 {n: 1, now: 600*second + 1, want: string(record.NoBlock)},
		"refused a moment ago": {change: func(s *series) { s.Refuse(refusal, second) }, n: 101,
			now: second, want: string(record.CeilingReached)},
		"refused a moment ago, but in stock": {change: func(s *series) { s.Refuse(refusal, second) }, n: 1,
			now: second},
		"refused long ago": {change: func(s *series) { s.Refuse(refusal, second) }, n: 101,
			now: 3 * second, want: "waits"},
		"refused since it waits": {change: func(s *series) { s.Refuse(refusal, second) },
			since: second, n: 101, now: 3 * second, want: string(record.CeilingReached)},
		"refused before it waited": {change: func(s *series) { s.Refuse(refusal, second) },
			since: second + 1, n: 101, now: 3 * second, want: "waits"},
		"it has waited for a while":            {since: second, n: 101, now: 6*second - 1, want: "waits"},
		"it has waited too long":               {since: second, n: 101, now: 6 * second, want: string(record.NoBlock)},
		"whole, from one block":                {n: 100, whole: true, now: second},
		"whole, but the stock is in two parts": {change: inTwo, n: 120, whole: true, now: second, want: "waits"},
		"not whole, and the stock is in two":   {change: inTwo, n: 120, now: second},
	} {
		t.Run(name, c.run)
	}
}

// takeCase is a request to a series that holds the positions from 0 to 99, after a change.
type takeCase struct {
	change func(*series)
	since  int64 // when the request began to wait, 0: it is new
	n      int64
	whole  bool
	now    int64
	want   string // a reason, "waits" or ""
}

func (c takeCase) run(t *testing.T) {
	s := owner(100)
	if c.change != nil {
		c.change(s)
	}
	before := len(s.Waiting)
	w := sequence.Wait{Since: c.since}
	i := &Issuer{quick: func() int64 { return c.now }, shares: &shares{families: &families{}, alarms: newAlarms()}}
	i.series.shares, i.series.byName = i.shares, map[string]*series{s.Name: s}
	i.progress.Store(&progress{knewAllAt: 1})
	runs, err := i.Take(&w, []byte(s.Name), int(c.n), c.whole, func() {}, nil)
	low := len(i.alarms.all) > 0 // a round should come soon
	var refused *record.Refusal
	switch errors.As(err, &refused); {
	case c.want == "waits":
		if !errors.Is(err, sequence.ErrPending) || !low || len(s.Waiting) != before+1 || w.Since == 0 {
			t.Errorf("%v, %v", err, low)
		}
	case c.want != "":
		if refused == nil || string(refused.Reason) != c.want || len(s.Waiting) != before {
			t.Errorf("%v", err)
		}
	default:
		var n int64
		for _, r := range runs {
			n += int64(r.Len)
		}
		if err != nil || n != c.n || c.whole && len(runs) != 1 {
			t.Errorf("%v, %v", runs, err)
		}
	}
}

// wait returns a change by which a request for n values waits.
func wait(n int64, whole bool) func(*series) {
	return func(s *series) {
		s.Waiting = append(s.Waiting, mode.Request{Wait: &sequence.Wait{Since: 1}, N: n, Whole: whole, Wake: func() {}})
	}
}

func TestNeeds(t *testing.T) {
	type w struct {
		n     int64
		whole bool
	}
	for name, c := range map[string]struct {
		waiting []w
		want    demand
	}{
		"nobody":             {nil, demand{0, 1, false}},
		"in stock":           {[]w{{150, false}}, demand{150, 1, false}},
		"not in stock":       {[]w{{160, false}}, demand{160, 10, true}},
		"whole, in one part": {[]w{{100, true}}, demand{100, 100, false}},
		"whole, in no part":  {[]w{{101, true}}, demand{101, 101, true}},
		"together too many":  {[]w{{100, false}, {60, false}}, demand{160, 1, true}},
		"the smallest need":  {[]w{{500, true}, {170, false}, {300, true}}, demand{970, 20, true}},
	} {
		s := owner(100)
		s.segment().stock.Add(positions.Block{First: 200, End: 250})
		for _, r := range c.waiting {
			wait(r.n, r.whole)(s)
		}
		if got := s.segment().needs(); got != c.want {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}

func TestDecide(t *testing.T) {
	good := mode.Situation{AtMost: 10 * second, SeqTime: 0, Nonce: "mine"}
	unconfirmed := good
	unconfirmed.Unconfirmed = 5 * time.Second
	for name, c := range map[string]decideCase{
		"nothing is due": {series: func() *series { return owner(100) }, found: ptr(usual(nil)),
			e: good, left: 100},
		"not a tenth is used": {series: used(10), found: ptr(usual(nil)), e: good, left: 90},
		"a tenth is used": {series: used(11), found: ptr(usual(nil)), e: good,
			block: positions.Block{First: 100, End: 132}, left: 89},
		"a request waits": {series: waiting(150), found: ptr(usual(nil)), e: good,
			block: positions.Block{First: 100, End: 250}, left: 100},
		"others have taken a block": {series: waiting(150),
			found: ptr(usual(func(r *record.Record) { r.WriteCount, r.Next = 11, 500 })), e: good,
			block: positions.Block{First: 500, End: 650}, left: 100},
		"too early after a reconnection": {series: waiting(150), found: ptr(usual(nil)), e: unconfirmed,
			reason: record.Confirming, left: 100},
		"too early, but nobody waits": {series: used(11), found: ptr(usual(nil)), e: unconfirmed, left: 89},
		"the ceiling": {series: waiting(6000), found: ptr(usual(nil)), e: good,
			reason: record.CeilingReached, left: 100},
		"an older record": {series: waiting(150), found: ptr(usual(func(r *record.Record) { r.WriteCount = 9 })),
			e: good, lost: true, left: 100},
		"a missing record": {series: waiting(150), e: good, lost: true, left: 100},
		"an unknown name":  {series: blank, e: good},
		"it is deleted": {series: waiting(150),
			found: ptr(usual(func(r *record.Record) { r.WriteCount, r.DeletedAt = 11, 1 })), e: good},
		"it was created again": {series: waiting(150),
			found: ptr(usual(func(r *record.Record) { r.WriteCount, r.ID, r.Next = 11, "new", 3 })), e: good,
			block: positions.Block{First: 3, End: 153}},
		"next was raised": {series: waiting(150),
			found: ptr(usual(func(r *record.Record) { r.WriteCount, r.Next, r.RaisedTo = 11, 700, 700 })), e: good,
			block: positions.Block{First: 700, End: 850}},
	} {
		t.Run(name, c.run)
	}
}

// decideCase is a case of decide: the records that a node reads of a series, and its decision.
type decideCase struct {
	series func() *series
	found  *record.Record // nil: missing
	e      mode.Situation
	block  positions.Block
	reason record.Reason
	lost   bool
	left   int64
}

func (c decideCase) run(t *testing.T) {
	s := c.series()
	v := view{before: s.Known}
	v.Snapshot = record.Snapshot{Cluster: &record.Cluster{Incarnation: 1}, State: &record.State{Incarnation: 1}, Record: c.found,
		Stat: store.Stat{Version: 3}}
	taken, err := s.decide(v, c.e)
	var lost *lostError
	var left int64
	if s.Issuing != nil {
		left = s.segment().stock.Left()
	}
	if errors.As(err, &lost) != c.lost || left != c.left {
		t.Errorf("%v, %d left", err, left)
	}
	if (taken.kind == modeStep) != (c.block.Len() > 0) || taken.kind == modeStep &&
		(taken.Block != c.block || taken.Record.Nonce != "mine") {
		t.Errorf("takes %+v", taken)
	}
	if (s.Refusal() != nil) != (c.reason != "") || s.Refusal() != nil && s.Refusal().Reason != c.reason {
		t.Errorf("refuses with %v", s.Refusal())
	}
	if !c.lost && len(s.Waiting) > 0 {
		t.Error("the requests are not woken")
	}
}

// used returns a series that has issued n of 100 positions.
func used(n int64) func() *series {
	return func() *series {
		s := owner(100)
		s.segment().stock.SkipTo(n)
		return s
	}
}

// waiting returns a series with 100 positions, of which a request wants n.
func waiting(n int64) func() *series {
	return func() *series {
		s := owner(100)
		wait(n, false)(s)
		return s
	}
}

// The outcome of a write is not known. Later the record shows it.
func TestResolve(t *testing.T) {
	attempt := func(nonce string) mode.Write {
		return mode.Write{Write: record.Write{Record: usual(func(r *record.Record) { r.WriteCount, r.Next, r.Nonce = 11, 200, nonce }),
			Block: positions.Block{First: 100, End: 200}}}
	}
	for name, c := range map[string]struct {
		found   record.Record
		version int32
		left    int64
		open    int
	}{
		"not written yet":       {usual(nil), 3, 100, 2},
		"the first was written": {attempt("a").Record, 4, 200, 0},
		"the other was written": {attempt("b").Record, 4, 200, 0},
		"another node's write":  {usual(func(r *record.Record) { r.WriteCount, r.Next, r.Nonce = 11, 150, "x" }), 4, 100, 0},
		"a write after ours":    {usual(func(r *record.Record) { r.WriteCount, r.Next, r.Nonce = 12, 250, "x" }), 5, 100, 0},
		"put back":              {usual(func(r *record.Record) { r.WriteCount, r.Nonce = 11, "x" }), 3, 100, 0},
	} {
		s := owner(100)
		m := s.segment()
		m.attempts, m.tried = []mode.Write{attempt("a"), attempt("b")}, 3
		v := view{}
		v.Snapshot = record.Snapshot{Cluster: &record.Cluster{Incarnation: 1}, State: &record.State{Incarnation: 1},
			Record: &c.found, Stat: store.Stat{Version: c.version}}
		if _, err := s.decide(v, mode.Situation{AtMost: 1}); err != nil || m.stock.Left() != c.left ||
			len(m.attempts) != c.open {
			t.Errorf("%s: %v, %d left, %d attempts", name, err, m.stock.Left(), len(m.attempts))
		}
	}
}
