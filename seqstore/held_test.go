package seqstore

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// hold creates a sequence that is held, with 500 as its first value.
func (s *stage) hold(name string) Record {
	s.t.Helper()
	r, err := s.operator().Create(context.Background(), Definition{
		Name: name, Map: plain(), Settings: settings(1000), StartGiven: true, First: 500, Held: true, Source: "leaf",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stage) start(name string, first int64) error {
	_, err := s.operator().Start(context.Background(), name, first)
	return err
}

func TestHeldSequenceIssuesNothingUntilItIsStarted(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.hold("order")
	for range 3 {
		if reason := a.ask("order", 1, false).reason(); reason != Held {
			t.Fatalf("a held sequence answers %s", reason)
		}
		s.run(2e9)
	}
	if r := s.view("order").record; r.Next != 499 || !r.Held {
		t.Errorf("nodes have written %+v", r)
	}
	if line, err := a.is.List(nil, nil), error(nil); len(line) != 1 || !strings.HasSuffix(line[0], " state=held") {
		t.Errorf("%q %v", line, err)
	}
	if err := s.start("order", 501); !errors.Is(err, ErrBehindSource) {
		t.Errorf("start although the source has issued 500: %v", err)
	}
	if err := s.start("order", 500); err != nil {
		t.Fatal(err)
	}
	s.run(2e9)
	if v := a.ask("order", 1, false).first(); v != 500 {
		t.Errorf("the first value is %d", v)
	}
	if v := b.ask("order", 1, false).first(); v <= 500 {
		t.Errorf("the first value of the second node is %d", v)
	}
	if err := s.start("order", 500); !errors.Is(err, ErrNotHeld) {
		t.Errorf("start again: %v", err)
	}
	if err := s.start("nobody", 500); !errors.Is(err, ErrNotFound) {
		t.Errorf("start of an unknown sequence: %v", err)
	}
}

func TestHeldSequenceSurvivesALoss(t *testing.T) {
	s := newStage(t)
	blank := s.mem.Snapshot()
	a := s.node()
	before := s.hold("order")
	s.run(2e9) // the node reads it, because it was changed
	s.lose(blank, 9)
	s.run(2 * stageConfirm)
	v := s.view("order")
	if v.record == nil || !v.record.Held || v.record.ID != before.ID || v.record.Next != before.Next {
		t.Fatalf("after a loss of data the record is %+v", v.record)
	}
	if reason := a.ask("order", 1, false).reason(); reason != Held {
		t.Errorf("after a loss of data a held sequence answers %s", reason)
	}
	if err := s.start("order", 500); err != nil {
		t.Fatal(err)
	}
	s.run(stageConfirm)
	if v := a.ask("order", 1, false).first(); v < 500 {
		t.Errorf("the first value is %d", v)
	}
}

// A start that ZooKeeper loses is put back by a node that issues values.
func TestLostStartIsPutBack(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.hold("order")
	image := s.mem.Snapshot()
	if err := s.start("order", 500); err != nil {
		t.Fatal(err)
	}
	s.run(2e9)
	first := a.ask("order", 1, false).first()
	s.lose(image, 9)
	s.run(2 * stageConfirm)
	if r := s.view("order").record; r.Held {
		t.Error("the sequence is held again")
	}
	if v := a.ask("order", 1, false).first(); v <= first {
		t.Errorf("%d follows %d", v, first)
	}
}

func TestStartRenewsTheRecord(t *testing.T) {
	s := newStage(t)
	s.node()
	old := s.hold("order")
	s.run(600e9)
	if err := s.start("order", 1); err != nil {
		t.Fatal(err)
	}
	if r := s.view("order").record; r.At < old.At+600_000 {
		t.Errorf("the record is from %d ms before the start", old.At+600_000-r.At)
	}
}
