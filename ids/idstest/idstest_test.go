package idstest

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/ids"
)

func TestSource(t *testing.T) {
	Conform(t, New(), Sequences{Plain: "order", Strict: "invoice"})
}

func TestSourceDoesWhatItIsTold(t *testing.T) {
	s := New()
	s.SetNext("", 40)
	s.SetNext("order", 7)
	if id, err := s.Next(t.Context()); id != 40 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
	if v, err := s.Sequence("order").Next(t.Context()); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	s.Fail(ids.Unavailable(nil, &ids.ReplyError{Code: "FENCED", Text: "x"}))
	if id, err := s.Next(t.Context()); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("%d, %v", id, err)
	}
	s.Fail(nil)
	if id, err := s.Next(t.Context()); id != 41 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
}
