package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

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

// SEQ at a node that does not know the sequence yet takes no value.
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
