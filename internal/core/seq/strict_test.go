package seq

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// strictly returns a series in strict mode with left positions, and requests for these numbers of values that wait.
func strictly(left int64, waiting ...int64) (*strict, mode.View, mode.Situation) {
	r := usual(func(r *record.Record) { r.Mode, r.Max, r.Next = record.Strict, r.Start+99, 100-left })
	s := knowing(r)
	for _, n := range waiting {
		wait(n, false)(s)
	}
	v := mode.View{Snapshot: record.Snapshot{Cluster: &record.Cluster{Incarnation: 1}}}
	return s.Issuing.(*strict), v, mode.Situation{AtMost: 1000, SeqTime: 1000, Nonce: "mine"}
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
		s.ordered = &ordered.Shared{Now: func() int64 { return now }}
		const late = 0 // the clock of a node that stood still, for a moment
		runs, _, err := s.Serve(r, late, 0, nil)
		var refused *record.Refusal
		if tooLate && (!errors.As(err, &refused) || refused.Reason != record.Unknown || s.unanswered != 3) {
			t.Errorf("late: %v, %v, %d unanswered", runs, err, s.unanswered)
		}
		if !tooLate && (err != nil || len(runs) != 1 || runs[0].Len != 3 || s.unanswered != 0) {
			t.Errorf("in time: %v, %v, %d unanswered", runs, err, s.unanswered)
		}
		if _, _, err := s.Serve(r, late, 0, nil); err == nil {
			t.Error("the answer was given twice")
		}
	}
}

// The directory of the keys cannot be made. Nothing was sent, so the request goes on waiting.
func TestKeysWithoutTheirDirectory(t *testing.T) {
	_, a, _ := strictStage(t)
	a.calls = faultsOf(memzk.FailBefore, func(c memzk.Call) bool { return c.Op == "ensure root" })
	a.askKey("k")
	_ = a.round()
	a.calls = nil
	if u, ok := a.is.issuer.Use("invoice"); !ok || u.Unanswered != 0 {
		t.Errorf("%d values count as unanswered", u.Unanswered)
	}
}

// ZooKeeper has lost a record of a strict sequence and the keys of its requests. A node that knows both puts both back.
func TestKeysOfRequestsArePutBack(t *testing.T) {
	s, a, _ := strictStage(t)
	s.run(4 * time.Second)
	copied := s.Mem.Snapshot()
	if got := a.askKey("k").first(); got != 1 {
		t.Fatal(got)
	}
	s.lose(copied, 9)
	a.noteLoss()
	s.run(2 * stageConfirm)
	data, _, err := s.Mem.Peek(record.RequestKeysPath(s.view("invoice").Record.ID))
	keys, _ := record.ParseRequestKeys(data)
	if err != nil || len(keys) != 1 || keys[0].Position != 0 {
		t.Errorf("%v, keys %v", err, keys)
	}
}

// A node that does not know the sequence yet is asked to show it.
func TestShowTakesNoValueOfAStrictSequence(t *testing.T) {
	s, a, _ := strictStage(t)
	a.is.issuer.series.remove(func(*series) bool { return true })
	_, _ = a.is.issuer.Show(new(sequence.Wait), []byte("invoice"), func() {})
	for range 3 {
		_ = a.round()
	}
	if next := s.view("invoice").Record.Next; next != 0 {
		t.Errorf("%d positions are taken", next)
	}
	if v := a.ask("invoice", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

// A retry with a key while the sequence is exhausted.
func TestKeyGetsItsValueAlthoughTheSequenceIsExhausted(t *testing.T) {
	s, a, _ := strictStage(t)
	s.setNext("invoice", sequence.MaxJavaScript-1)
	s.run(4 * time.Second)
	a.ask("invoice", 1, false).first()
	v := a.askKey("k").first()
	if r := a.ask("invoice", 1, false).reason(); r != record.Exhausted {
		t.Fatal(r)
	}
	if again := a.askKey("k").first(); again != v {
		t.Errorf("%d, not %d", again, v)
	}
}
