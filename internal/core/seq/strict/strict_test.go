package strict

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// quiet is a sequence that does nothing.
type quiet struct{}

func (quiet) KnowWritten(mode.Write, int64) {}
func (quiet) WakeAt(int64)                  {}

// strictly returns the mode of a sequence with left positions, and requests for these numbers of values that wait.
func strictly(left int64, waiting ...int64) (*Strict, mode.View, mode.Situation) {
	r := record.Record{
		ID: "id", Mode: record.Strict, Map: sequence.Map{Start: 1, Increment: 1, Max: 100},
		Settings: record.Settings{Ceiling: 1000, HardCeiling: 1000},
		Next:     100 - left, Credit: 5000, WriteCount: 10, Nonce: "nonce", Incarnation: 1,
	}
	s := New(&mode.Series{Name: "invoice", Host: quiet{}, Known: &r}, nil)
	s.Values = sequence.NewValues(r.Map, sequence.Key{})
	for _, n := range waiting {
		s.Waiting = append(s.Waiting, mode.Request{Wait: &sequence.Wait{Since: 1}, N: n, Wake: func() {}})
	}
	v := mode.View{Snapshot: record.Snapshot{Cluster: &record.Cluster{Incarnation: 1}}}
	return s, v, mode.Situation{AtMost: 1000, SeqTime: 1000, Nonce: "mine"}
}

func TestStrictBatch(t *testing.T) {
	for name, c := range map[string]struct {
		left        int64
		waiting     []int64
		taken, rest int64 // requests of the write, and those that wait on
		refused     []int // of waiting
	}{
		"nobody waits":                    {50, nil, 0, 0, nil},
		"all":                             {50, []int64{1, 20, 3}, 3, 0, nil},
		"exactly all positions":           {6, []int64{1, 2, 3}, 3, 0, nil},
		"nobody overtakes":                {6, []int64{1, 2, 4, 1}, 2, 2, nil},
		"more than is left, for one":      {6, []int64{1, 7, 2}, 2, 1, []int{1}},
		"more than is left, for all":      {6, []int64{7, 8}, 0, 2, []int{0, 1}},
		"nothing is left, so all must go": {0, []int64{1, 2}, 0, 2, nil},
	} {
		s, v, sit := strictly(c.left, c.waiting...)
		all := s.Waiting
		got := s.NextWrite(v, sit)
		var taken int64
		if got != nil {
			taken = int64(len(got.Requests))
			if got.Block.First != 100-c.left || got.Record.Next != got.Block.End {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if taken != c.taken || int64(len(s.Waiting)) != c.rest {
			t.Errorf("%s: %d taken, %d wait", name, taken, len(s.Waiting))
		}
		var refused []int
		for k, r := range all {
			if r.Wait.Result != nil {
				refused = append(refused, k)
			}
		}
		if len(refused) != len(c.refused) {
			t.Errorf("%s: %v are refused", name, refused)
		}
		if exhausted := s.Refusal().Why() == record.Exhausted; exhausted != (c.left == 0) {
			t.Errorf("%s: %v", name, s.Refusal())
		}
	}
}

// An answer is given once, and not when an operator may have said where the sequence goes on.
func TestStrictAnswerIsGivenOnceAndInTime(t *testing.T) {
	for _, tooLate := range []bool{false, true} {
		s, v, sit := strictly(50, 3)
		t1 := s.NextWrite(v, sit)
		s.Wrote(*t1, mode.View{}, 0, 0, nil)
		r, now := t1.Requests[0], int64(1e9)
		if tooLate {
			now += int64(AnswerFor)
		}
		s.now = func() int64 { return now }
		const late = 0 // the clock of a node that stood still, for a moment
		runs, _, err := s.Serve(r, late, 0, nil)
		var refused *record.Refusal
		if tooLate && (!errors.As(err, &refused) || refused.Reason != record.Unknown || s.Unanswered != 3) {
			t.Errorf("late: %v, %v, %d unanswered", runs, err, s.Unanswered)
		}
		if !tooLate && (err != nil || len(runs) != 1 || runs[0].Len != 3 || s.Unanswered != 0) {
			t.Errorf("in time: %v, %v, %d unanswered", runs, err, s.Unanswered)
		}
		if _, _, err := s.Serve(r, late, 0, nil); err == nil {
			t.Error("the answer was given twice")
		}
	}
}

// A node whose write was faster leaves the sequence to the other nodes that write it, for at most a second. One that
// was slower tries again soon.
func TestPausesOfAStrictSequence(t *testing.T) {
	const took = 3 * time.Millisecond
	for name, row := range map[string]struct {
		others int
		took   time.Duration
		err    error
		ago    time.Duration // when the others were seen
		leaves time.Duration
		again  time.Duration
	}{
		"alone":              {0, took, nil, 0, 0, longestPause},
		"with one more":      {1, took, nil, 0, 6*time.Millisecond + time.Microsecond, longestPause},
		"with three more":    {3, took, nil, 0, 18*time.Millisecond + time.Microsecond, 3 * longestPause},
		"a slow write":       {1, time.Minute, nil, 0, writerCountsFor, longestPause},
		"others of long ago": {2, took, nil, writerCountsFor, 0, longestPause},
		"others of just now": {1, took, nil, writerCountsFor - took - 1, 6*time.Millisecond + time.Microsecond, longestPause},
		"outcome unknown":    {1, took, errors.New("no answer"), 0, 0, longestPause},
	} {
		s, v, sit := strictly(50, 3)
		t1 := s.NextWrite(v, sit)
		sent := int64(time.Hour)
		now := sent + int64(row.took)
		s.writers = map[string]int64{}
		for k := range row.others {
			s.writers[string(rune('a'+k))] = sent - int64(row.ago)
			if row.took > writerCountsFor {
				s.writers[string(rune('a'+k))] = now
			}
		}
		again := s.Pause(sent)
		if _, leaves := s.Wrote(*t1, v, sent, now, row.err); leaves != row.leaves || again != row.again && row.ago == 0 {
			t.Errorf("%s: leaves it for %s, tries again within %s, want %s and %s", name, leaves, again, row.leaves,
				row.again)
		}
	}
}

// ZooKeeper forbids the write of a strict sequence. It has answered, so the reply must not say that it has not.
func TestTextOfAnUnknownOutcome(t *testing.T) {
	s, v, sit := strictly(50, 1)
	s.now = func() int64 { return 1000 }
	r := s.Waiting[0]
	s.Wrote(*s.NextWrite(v, sit), v, 1, 2, store.ErrDenied)
	_, _, err := s.Serve(r, 0, 0, nil)
	if err == nil || !strings.Contains(err.Error(), "reason=unknown") ||
		!strings.Contains(err.Error(), "it is not known whether ZooKeeper has made the write") {
		t.Error(err)
	}
}
